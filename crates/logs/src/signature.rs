//! A known line, as data.

/// What a known line is good for. Rules look at roles; the role never changes by context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Something failed, and this line says what.
    Error,
    /// Something went wrong earlier or elsewhere; this line is its echo.
    Echo,
    /// A fact of the host, the runtime or the workload (a size, a version, a device).
    Fact,
    /// A setting seen in the text (an environment variable, a kernel parameter, a flag).
    Setting,
    /// A line that alarms people and means nothing.
    Benign,
}

/// One known line. All of them stand in the tables of `signatures/`, one file per program family.
#[derive(Debug)]
pub struct Signature {
    /// Stable name, kebab case: `torch-oom`.
    pub id: &'static str,
    /// Who prints it.
    pub program: &'static str,
    /// What it is good for.
    pub role: Role,
    /// Texts of which at least one stands in every line that matches (case-sensitive). The prefilter looks for these.
    pub literals: &'static [&'static str],
    /// The exact pattern, in the syntax of the `regex` crate; named groups are the fields.
    pub pattern: &'static str,
    /// A line that matches, as the program prints it.
    pub example: &'static str,
    /// What the line says, in one sentence for a user.
    pub meaning: &'static str,
}
