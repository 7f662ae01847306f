package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/psych-systems/psych-go/spec"
)

// localTenant is the tenant of who names none.
const localTenant = "local"

// place is where a command acts: on whose behalf, in which deployment.
type place struct {
	// scope is TENANT or TENANT/PRINCIPAL.
	scope string
	// config is the configuration file; "" for the defaults.
	config string
}

func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.scope, "scope", localTenant, "on whose behalf: `TENANT[/PRINCIPAL]`")
	p.configFlag(cmd)
}

func (p *place) configFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.config, "config", "", "the configuration `FILE`")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json")
}

// fileLimit bounds a file that the user names, in bytes.
const fileLimit = 4 << 20

func readSpec(file string) (spec.Version, error) {
	data, err := readFile(file, "the Spec")
	if err != nil {
		return spec.Version{}, err
	}
	return spec.Parse(file, data)
}

// readFile reads a file that the user named; what says what it should be.
func readFile(file, what string) ([]byte, error) {
	unusable := func(why string, cause error) ([]byte, error) {
		return nil, wrong(fmt.Sprintf("%s %s %s", what, file, why), cause)
	}
	opened, err := os.Open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unusable("does not exist", err)
	case err != nil:
		return unusable("cannot be read", err)
	}
	defer func() { _ = opened.Close() }()
	if info, err := opened.Stat(); err == nil && info.IsDir() {
		return unusable("is a directory", nil)
	}
	data, err := io.ReadAll(io.LimitReader(opened, fileLimit+1))
	switch {
	case err != nil:
		return unusable("cannot be read", err)
	case len(data) > fileLimit:
		return unusable(fmt.Sprintf("is larger than %d bytes", fileLimit), nil)
	}
	return data, nil
}
