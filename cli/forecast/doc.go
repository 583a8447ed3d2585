// Package forecast chooses the nodes whose drains are foreseen, and shows what pkg/drain
// foresees for them, with the budgets that several of them share named once.
package forecast
