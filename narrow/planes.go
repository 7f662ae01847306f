package narrow

// Plane is one of the layers that take tools away.
type Plane string

// The planes, from the widest to the narrowest.
const (
	PlaneTenant      Plane = "tenant"
	PlaneSpec        Plane = "spec"
	PlaneUnreachable Plane = "unreachable"
	PlaneWithheld    Plane = "withheld"
)

// Planes is what decides over the tools of one server. Its zero value lets
// nothing through.
type Planes struct {
	// Tenant is what the tenant permits of the server.
	Tenant Grant
	// Spec is what the Spec grants; a Spec that lists nothing grants [All].
	Spec Grant
	// Reachable says that the server can be asked now.
	Reachable bool
	// Withheld is the tools that are kept back for now.
	Withheld Grant
}

// Callable reports whether a tool, by its server's own name for it, may be
// called, and if not, the widest plane that takes it away.
func Callable(tool string, planes Planes) (bool, Plane) {
	switch {
	case !planes.Tenant.Permits(tool):
		return false, PlaneTenant
	case !planes.Spec.Permits(tool):
		return false, PlaneSpec
	case !planes.Reachable:
		return false, PlaneUnreachable
	case planes.Withheld.Permits(tool):
		return false, PlaneWithheld
	default:
		return true, ""
	}
}
