package work

// Mute ends an item's signs of life, as a kill does.
func Mute(i *Item) { i.stop() }
