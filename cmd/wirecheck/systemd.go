package main

import (
	"context"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notifySystemd tells the service manager that the program is ready, and when it is asked to end (Type=notify, sd_notify(3)). Without one it
// does nothing. What it returns is to be called at the end: it waits for what has to be told.
func (c *common) notifySystemd(ctx context.Context) (wait func()) {
	tell := func(state string) {
		if _, err := daemon.SdNotify(false, state); err != nil {
			c.log.Warn().Err(err).Str("state", state).Msg("systemd cannot be told of the state")
		}
	}
	tell(daemon.SdNotifyReady)
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		tell(daemon.SdNotifyStopping)
	})
	return func() {
		if !stop() {
			<-told
		}
	}
}
