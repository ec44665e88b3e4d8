package txcheck

// isolation checks item dependencies.
func (k *check) isolation(got *capture) {}
