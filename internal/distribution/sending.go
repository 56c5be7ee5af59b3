package distribution

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/internal/distribution/streampb"
	"github.com/weir-dev/weir/internal/policy"
	"github.com/weir-dev/weir/internal/policycache"
)

// maxPart bounds a message.
const maxPart = 256 << 10

// sender sends one message.
type sender func(*streampb.FromManager) error

// sendSet tells an enforcer how to come from one view to another; from is nil for
// an enforcer whose set is unknown.
func sendSet(send sender, from, to *policycache.View) error {
	if err := send(&streampb.FromManager{Message: &streampb.FromManager_Begin{Begin: &streampb.Begin{Complete: from == nil}}}); err != nil {
		return err
	}
	if from == nil {
		from = &policycache.View{}
	}
	for _, change := range []func(sender, *policycache.View, *policycache.View) error{sendBackends, sendPolicies, sendKept} {
		if err := change(send, from, to); err != nil {
			return err
		}
	}
	return send(&streampb.FromManager{Message: &streampb.FromManager_Commit{Commit: &streampb.Commit{Version: to.Version[:]}}})
}

func sendBackends(send sender, from, to *policycache.View) error {
	had := map[policycache.LoginName]policycache.Digest{}
	for _, b := range from.Backends {
		had[b.LoginName] = b.Digest
	}
	for _, b := range to.Backends {
		if had[b.LoginName] != b.Digest {
			if err := sendItem(send, backendToPB(b)); err != nil {
				return err
			}
		}
		delete(had, b.LoginName)
	}
	for login := range had {
		if err := send(&streampb.FromManager{Message: &streampb.FromManager_RemoveBackend{RemoveBackend: loginToPB(login)}}); err != nil {
			return err
		}
	}
	return nil
}

func sendPolicies(send sender, from, to *policycache.View) error {
	had := map[policy.Name]policycache.PolicyItem{}
	for _, p := range from.Policies {
		had[p.Name] = *p
	}
	for _, p := range to.Policies {
		if before := had[p.Name]; before.Digest != p.Digest || before.Login != p.Login {
			if err := sendItem(send, policyToPB(p)); err != nil {
				return err
			}
		}
		delete(had, p.Name)
	}
	// What was withheld may be there still.
	for _, w := range from.Withheld {
		had[w.Name] = policycache.PolicyItem{}
	}
	for _, p := range to.Policies {
		delete(had, p.Name)
	}
	for _, w := range to.Withheld {
		delete(had, w.Name)
	}
	for name := range had {
		if err := send(&streampb.FromManager{Message: &streampb.FromManager_RemovePolicy{RemovePolicy: nameToPB(name)}}); err != nil {
			return err
		}
	}
	return nil
}

func sendKept(send sender, _, to *policycache.View) error {
	for _, w := range to.Withheld {
		if err := send(&streampb.FromManager{Message: &streampb.FromManager_Keep{Keep: &streampb.Keep{Name: nameToPB(w.Name)}}}); err != nil {
			return err
		}
	}
	return nil
}

func sendItem(send sender, item *streampb.Item) error {
	data, err := proto.Marshal(item)
	if err != nil {
		return fmt.Errorf("encode an item: %w", err)
	}
	for {
		part := data[:min(len(data), maxPart)]
		data = data[len(part):]
		err := send(&streampb.FromManager{Message: &streampb.FromManager_Part{Part: &streampb.Part{Data: part, More: len(data) > 0}}})
		if err != nil || len(data) == 0 {
			return err
		}
	}
}
