package generate_test

import "flag"

// more multiplies the number of cases that the tests on servers execute.
var more = flag.Uint64("more", 1, "how many times as many cases the tests on servers execute")
