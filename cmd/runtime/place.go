package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/psych-systems/psych-go/failure"
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

// specLimit bounds a Spec's file, in bytes.
const specLimit = 4 << 20

func readSpec(file string) (spec.Version, error) {
	data, err := readFile(file, "the Spec")
	if err != nil {
		return spec.Version{}, err
	}
	return spec.Parse(file, data)
}

// readFile reads a file that the user named; what says what it should be.
func readFile(file, what string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case os.IsNotExist(err):
		return nil, wrong(fmt.Sprintf("%s %s does not exist", what, file), err)
	case err != nil:
		return nil, wrong(fmt.Sprintf("%s %s cannot be read", what, file), err)
	case info.IsDir():
		return nil, wrong(fmt.Sprintf("%s %s is a directory", what, file), nil)
	case info.Size() > specLimit:
		return nil, wrong(fmt.Sprintf("%s %s is larger than %d bytes", what, file, specLimit), nil)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, failure.New(failure.KindSpecInvalid, fmt.Sprintf("%s %s cannot be read", what, file), err)
	}
	return data, nil
}
