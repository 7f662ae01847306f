package psych_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/mcptest"
	"github.com/psych-systems/psych-go/messages"
	"github.com/psych-systems/psych-go/model"
	"github.com/psych-systems/psych-go/secret"
)

// tokens mints a token at each resolution, so that each tells whose it is, of which
// version of the secret, and which resolution it came from. A version has the same
// identity for everybody: only the scope keeps two tenants' keys apart.
type tokens struct {
	mu       sync.Mutex
	versions map[messages.Scope]int
	minted   int
	// rotatedAt is how many tokens had been minted when a version ended.
	rotatedAt map[owner]int
}

// owner is whose a token is, and of which version of the secret.
type owner struct {
	tenant, principal string
	version           int
}

func newTokens() *tokens {
	return &tokens{versions: map[messages.Scope]int{}, rotatedAt: map[owner]int{}}
}

// Resolve implements [secret.Resolver].
func (k *tokens) Resolve(_ context.Context, scope messages.Scope, _ string) (secret.Credential, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.minted++
	version := k.versions[scope]
	return secret.Credential{
		Value:    secret.NewText(fmt.Sprintf("%s %s %d %d", scope.Tenant, scope.Principal, version, k.minted)),
		Identity: fmt.Sprint("version ", version),
	}, nil
}

func (k *tokens) rotate(scope messages.Scope) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rotatedAt[owner{scope.Tenant, scope.Principal, k.versions[scope]}] = k.minted
	k.versions[scope]++
}

// begunBeforeTheRotation reports whether a token was resolved while its version was
// the scope's own.
func (k *tokens) begunBeforeTheRotation(whose owner, number int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended, rotated := k.rotatedAt[whose]
	return number <= k.minted && (!rotated || number <= ended)
}

// ownerOf reads a token.
func ownerOf(token string) (whose owner, number int, ok bool) {
	n, err := fmt.Sscanf(token, "%s %s %d %d", &whose.tenant, &whose.principal, &whose.version, &number)
	return whose, number, err == nil && n == 4
}

// errand is the arguments of a call: what the server is told, counts and echoes.
type errand struct {
	ID        string `json:"id"`
	Tenant    string `json:"tenant"`
	Principal string `json:"principal"`
	// Count must be an integer; a call with another one is refused.
	Count any `json:"count"`
}

func (e errand) echo() string { return e.Tenant + "/" + e.Principal + "/" + e.ID }

const errandSchema = `{"type":"object","properties":{"id":{"type":"string"},"tenant":{"type":"string"},` +
	`"principal":{"type":"string"},"count":{"type":"integer"}},"required":["id","tenant","principal","count"]}`

// repeatable says of a tool that it may be carried out twice.
func repeatable(tool string) bool { return tool == "find" || tool == "set" }

// open is what tokens open: each tenant's tools have one that is its own by name.
func (w *world) open() func(token string) ([]mcptest.Tool, bool) {
	tools := map[string][2][]mcptest.Tool{}
	for i := range chaosTenants {
		tenant := fmt.Sprintf("t%02d", i)
		var list []mcptest.Tool
		for name, annotations := range map[string]string{
			"find": `{"readOnlyHint":true}`, "set": `{"idempotentHint":true,"destructiveHint":false}`,
			"drop": `{"destructiveHint":true}`, "extra": `{"readOnlyHint":true}`,
			"pay": `{"destructiveHint":false}`, "slow": `{"destructiveHint":false}`, "sealed": `{"destructiveHint":false}`,
			"mine_" + tenant: `{"destructiveHint":false}`,
		} {
			list = append(list, mcptest.Tool{
				Name: name, Description: "Does it.", Annotations: annotations, InputSchema: errandSchema, Call: w.carryOut,
			})
		}
		tools[tenant] = [2][]mcptest.Tool{list, list[1:]}
	}
	return func(token string) ([]mcptest.Tool, bool) {
		whose, _, ok := ownerOf(token)
		return tools[whose.tenant][w.listing.Load()%2], ok
	}
}

// carryOut is every tool of the servers.
func (w *world) carryOut(ctx context.Context, c mcptest.Call) mcptest.Result {
	var e errand
	if err := json.Unmarshal(c.Arguments, &e); err != nil {
		w.fault("a call of %s has the arguments %s", c.Tool, c.Arguments)
	}
	w.noteExecution(e.ID)
	draw := fnv.New32a()
	_, _ = draw.Write([]byte(e.ID))
	chance := draw.Sum32()
	if c.Tool == "slow" {
		select {
		case <-time.After(time.Duration(chance%200) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if chance%19 == 0 {
		return mcptest.ToolError(e.echo())
	}
	return mcptest.Text(e.echo())
}

// mind is the model: its answers follow from the story's seed, the Run and the turn,
// whatever the order of things is.
type mind struct{ w *world }

// Generate implements [model.Port].
func (m mind) Generate(ctx context.Context, request model.Request, _ func(string)) (model.Response, error) {
	var brief briefing
	if err := json.Unmarshal([]byte(request.Messages[0].Text), &brief); err != nil {
		return model.Response{}, err
	}
	turn := 0
	for _, message := range request.Messages {
		turn += oneIf(message.Role == model.RoleAssistant)
	}
	chance := rand.New(rand.NewPCG(m.w.seed, uint64(brief.Run*100+turn)))
	select {
	case <-time.After(time.Duration(chance.IntN(40)) * time.Millisecond):
	case <-ctx.Done():
		return model.Response{}, ctx.Err()
	}
	switch roll := chance.IntN(400); {
	case roll == 0:
		panic("in the model")
	case roll == 1:
		return model.Response{}, failure.New(failure.KindModelError, "the endpoint is away", nil)
	case turn >= brief.Turns:
		return say("done"), nil
	}
	var answer model.Response
	for i := range 1 + chance.IntN(6) {
		// Models repeat ids, and the runtime makes them different.
		id := fmt.Sprint("call ", i%4)
		alias := m.server(brief, request.Tools, chance)
		answer.ToolCalls = append(answer.ToolCalls, m.call(id, fmt.Sprintf("%d.%d.%d", brief.Run, turn, i), alias, brief, chance))
	}
	return answer, nil
}

// server draws one of the Run's servers, if it can one that is there.
func (m mind) server(brief briefing, offered []model.Tool, chance *rand.Rand) string {
	agent := m.w.agents[brief.Agent]
	alias := ""
	for range 4 {
		alias = agent.servers[chance.IntN(len(agent.servers))]
		for _, tool := range offered {
			if strings.HasPrefix(tool.Name, alias+"__") || agent.deferred[alias] && tool.Name == "call_tool" {
				return alias
			}
		}
	}
	return alias
}

func (m mind) call(id, errandID, alias string, brief briefing, chance *rand.Rand) model.ToolCall {
	agent := m.w.agents[brief.Agent]
	e := errand{ID: errandID, Tenant: brief.Tenant, Principal: brief.Principal, Count: chance.IntN(10)}
	tool := "pay"
	switch roll := chance.IntN(100); {
	case roll < 30:
	case roll < 55:
		tool = "find"
	case roll < 65:
		tool = "set"
	case roll < 75:
		tool = "mine_" + brief.Tenant
	case roll < 83:
		tool = "slow"
	case roll < 86:
		tool = "drop"
	case roll < 89:
		tool = "sealed"
	case roll < 91:
		tool = "none"
	case roll < 93:
		tool = fmt.Sprintf("mine_t%02d", chance.IntN(chaosTenants))
	case roll < 96:
		e.Count = "several"
	case agent.deferred[alias]:
		return call(id, "list_tools", fmt.Sprintf(`{"server":%q}`, alias))
	}
	arguments, err := json.Marshal(e)
	if err != nil {
		panic(err) // of strings and integers only
	}
	if agent.deferred[alias] {
		return call(id, "call_tool", fmt.Sprintf(`{"server":%q,"tool":%q,"arguments":%s}`, alias, tool, arguments))
	}
	return call(id, alias+"__"+tool, string(arguments))
}

// errandOf reads what a model asked for; false for a built-in tool's call.
func errandOf(name, arguments string) (e errand, tool string, deferred, ok bool) {
	raw := []byte(arguments)
	_, tool, direct := strings.Cut(name, "__")
	if !direct {
		var through struct {
			Tool      string          `json:"tool"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if name != "call_tool" || json.Unmarshal(raw, &through) != nil {
			return errand{}, "", false, false
		}
		raw, tool = through.Arguments, through.Tool
	}
	return e, tool, !direct, json.Unmarshal(raw, &e) == nil
}
