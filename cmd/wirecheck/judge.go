package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"wirecheck/offline"
	"wirecheck/oracle/isolation"
)

// sourceOf names the files.
func sourceOf(inputs []offline.Input) string {
	var names []string
	for _, in := range inputs {
		names = append(names, in.Name)
	}
	return strings.Join(names, ", ")
}

// openHistories opens the files to judge; done closes them. Several must be wirecheck's own.
func openHistories(cmd *cobra.Command, paths []string, format string) (inputs []offline.Input, found string, done func(), err error) {
	var opened []func()
	done = func() {
		for _, d := range opened {
			d()
		}
	}
	for _, path := range paths {
		in, name, f, d, err := openHistory(cmd, path, format)
		if err != nil {
			return nil, "", done, err
		}
		opened = append(opened, d)
		if found = f; found != inputNative && len(paths) > 1 {
			return nil, "", done, fmt.Errorf("%s: only histories of wirecheck's own are judged together", name)
		}
		inputs = append(inputs, offline.Input{In: in, Path: path, Name: name})
	}
	return inputs, found, done, nil
}

// judge is offline.Judge with the warnings on stderr, and with advice for who has a trace that cannot be judged.
func judge(cmd *cobra.Command, inputs []offline.Input, opts isolation.Options, ordered bool, follow offline.Follower) (*offline.Judgement, error) {
	j, err := offline.Judge(inputs, opts, ordered, func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), "wirecheck: warning:", text) }, follow)
	return j, notObserved(err)
}

// notObserved is an error, or what to do about it where a trace has no history.
func notObserved(err error) error {
	if e, ok := errors.AsType[*offline.NotObserved](err); ok {
		return errNotObserved(e)
	}
	return err
}
