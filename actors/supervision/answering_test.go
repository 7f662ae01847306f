package supervision_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/psych-systems/psych-go/actors/supervision"
	"github.com/psych-systems/psych-go/failure"
	"github.com/psych-systems/psych-go/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answerer is asked with messages.ListConnections, whose tenant says what to do.
type answerer struct {
	ledger   *supervision.Ledger
	kept     []supervision.Asked
	received *atomic.Int64
	endPanic bool
}

func (c *answerer) Receive(ctx actor.Context) {
	question, asked := ctx.Message().(*messages.ListConnections)
	if !asked {
		if wait, ok := ctx.Message().(time.Duration); ok {
			time.Sleep(wait)
		}
		return
	}
	c.received.Add(1)
	name := supervision.NameOf(ctx.Sender(), question)
	switch question.GetTenant() {
	case "answer":
		c.ledger.Answer(ctx, name, said(question.GetRequestId(), "answered"))
	case "twice":
		c.ledger.Answer(ctx, name, said(question.GetRequestId(), "answered"))
		c.ledger.Answer(ctx, name, said(question.GetRequestId(), "again"))
		c.ledger.Fail(ctx, name, failure.New(failure.KindBusy, "busy", nil))
	case "answer and panic":
		c.ledger.Answer(ctx, name, said(question.GetRequestId(), "answered"))
		panic("boom")
	case "panic":
		panic("boom")
	case "keep":
		c.kept = append(c.kept, name)
	}
}

func (c *answerer) End(ctx actor.Context) {
	for _, name := range c.kept {
		c.ledger.Answer(ctx, name, said(name.ID, "settled"))
	}
	if c.endPanic {
		panic("boom at the end")
	}
}

// said is an answer that carries a word.
func said(id, word string) proto.Message {
	return &messages.Connections{RequestId: id, Connections: []*messages.ConnectionStatus{{Id: word}}}
}

// stage is an answerer, and one who asks it and counts the answers by question.
type stage struct {
	root            *actor.RootContext
	answerer, asker *actor.PID
	received        atomic.Int64

	mu      sync.Mutex
	answers map[string][]string
}

func onStage(t *testing.T, endPanic bool, story func(o *stage)) {
	synctest.Test(t, func(*testing.T) {
		system := supervision.NewSystem(zap.NewNop())
		defer system.Shutdown()
		o := &stage{root: system.Root, answers: map[string][]string{}}
		o.asker = system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if answer, ok := ctx.Message().(*messages.Connections); ok {
				word := answer.GetFailure().GetKind()
				if word == "" {
					word = answer.GetConnections()[0].GetId()
				}
				o.mu.Lock()
				defer o.mu.Unlock()
				o.answers[answer.GetRequestId()] = append(o.answers[answer.GetRequestId()], word)
			}
		}))
		o.answerer = system.Root.Spawn(supervision.Answering(zap.NewNop(), func(ledger *supervision.Ledger) supervision.Answerer {
			return &answerer{ledger: ledger, received: &o.received, endPanic: endPanic}
		}, actor.WithGuardian(supervision.Guardian(zap.NewNop()))))
		story(o)
		o.stop()
		_ = system.Root.StopFuture(o.asker).Wait()
		time.Sleep(time.Second) // the library counts dead letters for a moment
	})
}

func (o *stage) ask(id, what string) {
	o.root.RequestWithCustomSender(o.answerer, &messages.ListConnections{RequestId: id, Tenant: what}, o.asker)
}

func (o *stage) stop() {
	_ = o.root.StopFuture(o.answerer).Wait()
	synctest.Wait()
}

// got checks a question's answers; "" is none.
func (o *stage) got(t *testing.T, id string, want ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if answers := o.answers[id]; !slices.Equal(answers, want) {
		t.Errorf("question %s got %v, want %v", id, answers, want)
	}
}

const closed = string(failure.KindMcpServerUnreachable)

func TestAPanicIsAnsweredAtOnceAndTheActorGoesOn(t *testing.T) {
	onStage(t, false, func(o *stage) {
		o.ask("kept", "keep")
		o.ask("fatal", "panic")
		o.ask("behind", "answer")
		synctest.Wait() // no time has passed: the actor is not restarted yet
		o.got(t, "kept", "settled")
		o.got(t, "fatal", closed)
		o.got(t, "behind")
		time.Sleep(time.Minute)
		o.got(t, "behind", "answered")
	})
}

func TestAnAnswerBeforeAPanicIsTheOnlyOne(t *testing.T) {
	onStage(t, false, func(o *stage) {
		o.ask("1", "answer and panic")
		time.Sleep(time.Minute)
		o.ask("2", "twice")
		synctest.Wait()
		o.got(t, "1", "answered")
		o.got(t, "2", "answered")
		o.stop()
		o.got(t, "1", "answered")
	})
}

func TestAnActorThatStopsLeavesNoQuestion(t *testing.T) {
	for name, endPanic := range map[string]bool{"in order": false, "with a panic": true} {
		t.Run(name, func(t *testing.T) {
			onStage(t, endPanic, func(o *stage) {
				o.ask("owed", "keep")
				o.ask("forgotten", "ignore")
				synctest.Wait()
				o.root.Send(o.answerer, time.Second)
				o.ask("in the mailbox", "answer")
				o.stop()
				o.ask("too late", "answer")
				synctest.Wait()
				o.got(t, "owed", "settled")
				o.got(t, "forgotten", closed)
				o.got(t, "in the mailbox", closed)
				// The library has no actor of that name any more, and says so itself.
				o.got(t, "too late")
			})
		})
	}
}

func TestAQuestionThatIsAskedTwiceOrByNobody(t *testing.T) {
	onStage(t, false, func(o *stage) {
		o.ask("1", "keep")
		o.ask("1", "keep")
		o.root.Send(o.answerer, &messages.ListConnections{RequestId: "2", Tenant: "panic"})
		synctest.Wait()
		if received := o.received.Load(); received != 2 {
			t.Errorf("the actor received %d questions, want the two that somebody asked", received)
		}
		o.stop()
		o.got(t, "1", "settled")
		o.got(t, "2")
	})
}

func TestEveryQuestionHasOneAnswerWhateverTheActorDoes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		plan := rapid.SliceOfN(rapid.SampledFrom([]string{"answer", "twice", "keep", "ignore", "panic", "answer and panic", "wait", "stop"}), 1, 30).Draw(r, "plan")
		endPanic := rapid.Bool().Draw(r, "panics at its end")
		var answers map[string][]string
		asked := map[string]bool{}
		onStage(t, endPanic, func(o *stage) {
			stopped := false
			for i, what := range plan {
				switch {
				case what == "wait":
					time.Sleep(3 * time.Second)
				case what == "stop" && !stopped:
					o.root.Stop(o.answerer)
					stopped = true
				case !stopped:
					id := string(rune('a' + i))
					asked[id] = true
					o.ask(id, what)
				}
			}
			o.stop()
			o.mu.Lock()
			defer o.mu.Unlock()
			answers = o.answers
		})
		for id := range asked {
			if len(answers[id]) != 1 {
				r.Fatalf("question %s got %v", id, answers[id])
			}
		}
	})
}
