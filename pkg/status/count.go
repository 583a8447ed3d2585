package status

import "fmt"

// Count is a number of things in words: "1 machine", "2 machines".
func Count[N int | int32](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
