package history

func (p *parser) access(a *Access) error {
	return p.object(func(key string) (err error) {
		switch key {
		case "op":
			a.Op, err = word[Op](p)
		case "row":
			err = p.row(&a.Row)
		case "name":
			a.Name, err = p.str()
		case "version":
			a.Version, err = p.str()
		case "writer":
			a.Writer, err = p.str()
		case "prev":
			a.Prev, err = p.str()
		case "prev_writer":
			a.PrevWriter, err = p.str()
		case "order":
			a.Order, err = p.uint()
		case "prev_order":
			a.PrevOrder, err = p.uint()
		case "as_of":
			a.AsOf, err = p.uint()
		case "approx":
			a.Approx, err = p.bool()
		case "image":
			a.Image, err = p.str()
		case "was":
			a.Was, err = p.str()
		case "values":
			a.Values, err = p.str()
		default:
			return unknownKey("acc." + key)
		}
		return err
	})
}
