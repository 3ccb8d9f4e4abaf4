//! A [`Rule`] is a rule for programs, from the documents of a machine. A [`Finding`] is an instruction that breaks a
//! rule.

crate::choices! {
    /// Severity of breaking a rule.
    ///
    /// The enum is exhaustive: callers that count or colour findings must handle every severity.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Severity {
        /// The code is allowed, but the author of the code probably meant something else.
        Note = "note",
        /// The behaviour is undefined or depends on facts outside the program.
        Warning = "warning",
        /// The documents forbid the code, or the machine traps.
        Error = "error",
    }
}

/// A requirement on programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Name of the rule.
    pub name: &'static str,
    /// Severity of breaking the rule.
    pub severity: Severity,
    /// Requirement of the rule.
    pub demands: &'static str,
    /// The document and page that state the rule, or the software that is known to follow the rule.
    pub source: &'static str,
    /// Way to fix a program that breaks the rule.
    pub fix: &'static str,
}

/// An instruction that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule that the instruction breaks.
    pub rule: &'static Rule,
    /// Address of the instruction, in the unit of the machine.
    pub pc: u32,
    /// Description of the violation.
    pub message: String,
}

impl Finding {
    /// Sorts findings by address. Findings with the same address keep their order.
    pub fn sort(findings: &mut [Finding]) {
        findings.sort_by_key(|finding| finding.pc);
    }
}

/// The rule for words that are not a valid instruction.
pub const MALFORMED: Rule = Rule {
    name: "malformed",
    severity: Severity::Error,
    demands: "Words that can be reached are instructions of the chip.",
    source: "the encoding tables",
    fix: "correct the word, or select the chip and the program type for which the program was made",
};

/// Defines the rules of a machine. Each rule is a constant with a name, a severity, a requirement, a source and a fix.
/// `RULES` contains all rules.
#[macro_export]
macro_rules! rules {
    ($($Name:ident = $name:literal, $severity:ident, $demands:literal, $source:literal, $fix:literal;)*) => {
        $(
            #[doc = $demands]
            pub const $Name: $crate::lint::Rule = $crate::lint::Rule {
                name: $name,
                severity: $crate::lint::Severity::$severity,
                demands: $demands,
                source: $source,
                fix: $fix,
            };
        )*
        /// All rules of the machine. The rule for malformed words, which all machines share, is
        /// `reconverge_isa::lint::MALFORMED`.
        pub const RULES: &[$crate::lint::Rule] = &[$($Name),*];
    };
}
