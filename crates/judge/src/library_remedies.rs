//! Remedies for what single libraries are known to hold, each in place of the general remedy of a finding. A row here changes the words of a
//! refusal, and nothing of what is refused. The general remedies stand with the findings themselves, in the words `FACT; REMEDY`: see
//! findings.rs.

/// Part of a finding that tells the library, and what to do.
const KNOWN: &[(&str, &str)] = &[(
    "/.onnxruntime/onnxruntime.db",
    "set ORT_DISABLE_TELEMETRY=1, for the freeze and for each start, and onnxruntime opens no database of its use",
)];

/// The remedy for a finding in which that stands.
pub fn known(fact: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(part, _)| fact.contains(part)).map(|(_, remedy)| *remedy)
}
