package conformance_test

import (
	"os"
	"slices"
	"testing"
)

// asClient has the test binary be the client under test.
const asClient = "PSYCH_CONFORMANCE_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) != "" {
		os.Exit(client(os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

// exempt names the required scenarios that the runtime cannot pass, and why.
var exempt = map[string]map[string]string{
	"2025-11-25": {
		"elicitation-sep1034-client-defaults": "the server asks a person, and nothing here can answer for one yet",
	},
	"2026-07-28": {
		"sep-2322-client-request-state": "the server asks a person, and nothing here can answer for one yet",
	},
}

// unwatched names the scenarios whose server does not show the suite its traffic,
// so that no message is judged against the schema. It is the suite's choice; the
// list notices when that changes.
var unwatched = []string{
	"http-custom-headers", "http-invalid-tool-headers", "http-standard-headers", "initialize",
	"json-schema-ref-no-deref", "request-metadata", "sse-retry",
}

// clocked is the one check that holds a stopwatch to the client. A machine that
// was busy elsewhere may try again.
const (
	clocked  = "client-sse-retry-timing"
	attempts = 5
)

// TestRequiredScenarios runs all that a revision requires of a client, and what
// the suite gained since and runs without counting it.
func TestRequiredScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the official suite")
	}
	suite := install(t)
	for revision, reasons := range exempt {
		t.Run(revision, func(t *testing.T) {
			required := suite.requirements(t, revision)
			scenarios := slices.DeleteFunc(required.Client, isAuthorization)
			for _, later := range required.NotScored {
				if later.Leg == "client" && later.Reason == "added-after-release" && !isAuthorization(later.Scenario) {
					scenarios = append(scenarios, later.Scenario)
				}
			}
			for name := range reasons {
				if !slices.Contains(scenarios, name) {
					t.Errorf("%s is exempt, and the suite does not require it", name)
				}
			}
			for _, scenario := range scenarios {
				t.Run(scenario, func(t *testing.T) {
					if reason, known := reasons[scenario]; known {
						t.Skip("EXEMPT: " + reason)
					}
					checks := suite.run(t, scenario, revision)
					for again := 1; again < attempts && isLate(checks); again++ {
						checks = suite.run(t, scenario, revision)
					}
					judge(t, scenario, checks)
				})
			}
		})
	}
}

// isLate reports whether time is all that the suite complains of.
func isLate(checks []check) bool {
	late := false
	for _, one := range checks {
		if one.complains() && one.ID != clocked {
			return false
		}
		late = late || one.complains()
	}
	return late
}

func judge(t *testing.T, scenario string, checks []check) {
	for _, one := range checks {
		t.Logf("%-8s %s %s %s", one.Status, one.ID, one.Name, one.ErrorMessage)
		if one.complains() {
			t.Errorf("%s: %s", one.Name, one.ErrorMessage)
		}
	}
	if succeeded(checks, "") == 0 {
		t.Error("the suite checked nothing")
	}
	if judged := succeeded(checks, "wire-schema-valid") == 1; judged == slices.Contains(unwatched, scenario) {
		t.Errorf("the suite judged the messages against the schema: %v", judged)
	}
}
