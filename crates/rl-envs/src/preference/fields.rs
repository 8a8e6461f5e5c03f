//! Which column of a file holds what: the usual names, and renames.

use super::error::DataError;

/// What a column can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// What is answered.
    Prompt,
    /// What stands before the prompt.
    System,
    /// A second half of the prompt, joined to it by a line break (`instruction` + `input`).
    PromptInput,
    /// The preferred answer.
    Chosen,
    /// The other answer.
    Rejected,
    /// The turns before the answers.
    Conversations,
    /// The first answer of a labelled pair.
    Answer1,
    /// The second answer of a labelled pair.
    Answer2,
    /// Which answer of a labelled pair is better, or whether a completion is good.
    Label,
    /// An answer judged by itself.
    Completion,
    /// By how much the chosen answer is better.
    Margin,
    /// Reward of the chosen answer.
    RewardChosen,
    /// Reward of the rejected answer.
    RewardRejected,
}

/// Every field, the name that renames call it by, and the column names that are known without a rename.
const KNOWN: [(Field, &str, &[&str]); 13] = [
    (Field::Prompt, "prompt", &["prompt", "instruction", "question", "input"]),
    (Field::System, "system", &["system"]),
    (Field::PromptInput, "prompt_input", &["input"]),
    (Field::Chosen, "chosen", &["chosen"]),
    (Field::Rejected, "rejected", &["rejected"]),
    (Field::Conversations, "conversations", &["conversations"]),
    (Field::Answer1, "output_1", &["output_1", "response_1", "answer_1"]),
    (Field::Answer2, "output_2", &["output_2", "response_2", "answer_2"]),
    (Field::Label, "label", &["label"]),
    (Field::Completion, "completion", &["completion"]),
    (Field::Margin, "margin", &["margin"]),
    (Field::RewardChosen, "reward_chosen", &["reward_chosen", "score_chosen", "chosen_score"]),
    (Field::RewardRejected, "reward_rejected", &["reward_rejected", "score_rejected", "rejected_score"]),
];

/// The columns to read, by field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields {
    renames: Vec<(Field, String)>,
}

impl Fields {
    /// Reads renames of the form `chosen=answer_a`: the field on the left is in the column on the right, and in no
    /// other.
    ///
    /// # Errors
    /// Names a rename without `=`, an unknown field (with the known ones) or a field renamed twice.
    pub fn renamed<'a>(renames: impl IntoIterator<Item = &'a str>) -> Result<Self, DataError> {
        let mut fields = Self::default();
        for rename in renames {
            let (name, column) =
                rename.split_once('=').filter(|(_, column)| !column.is_empty()).ok_or_else(|| {
                    DataError::Rename(format!(
                        "`{rename}` is no rename; write `field=column`, as in `chosen=answer_a`"
                    ))
                })?;
            let known = || KNOWN.map(|(_, name, _)| name).join(", ");
            let (field, ..) = KNOWN
                .into_iter()
                .find(|(_, it, _)| *it == name)
                .ok_or_else(|| DataError::Rename(format!("`{name}` is no field; fields are {}", known())))?;
            if fields.renames.iter().any(|(it, _)| *it == field) {
                return Err(DataError::Rename(format!("`{name}` is renamed twice; a field has one column")));
            }
            fields.renames.push((field, column.to_owned()));
        }
        Ok(fields)
    }

    /// Whether the file has a column of this name that any field reads.
    pub(super) fn reads(&self, column: &str) -> bool {
        self.renames.iter().any(|(_, it)| it == column)
            || KNOWN.iter().any(|(field, _, names)| self.rename(*field).is_none() && names.contains(&column))
    }

    /// The columns that may hold `field`, in order of preference.
    pub(super) fn columns(&self, field: Field) -> impl Iterator<Item = &str> {
        let renamed = self.rename(field);
        let (.., names) = KNOWN.iter().find(|(it, ..)| *it == field).expect("every field has a row in KNOWN");
        let usual = if renamed.is_some() { &[][..] } else { names };
        renamed.into_iter().chain(usual.iter().copied())
    }

    fn rename(&self, field: Field) -> Option<&str> {
        self.renames.iter().find(|(it, _)| *it == field).map(|(_, column)| column.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_field_has_one_column() {
        let fields = Fields::renamed(["chosen=answer_a"]).unwrap();
        assert_eq!(fields.columns(Field::Chosen).collect::<Vec<_>>(), ["answer_a"]);
        assert!(fields.reads("answer_a") && fields.reads("rejected") && !fields.reads("chosen"));
    }

    #[test]
    fn a_rename_that_cannot_work_says_what_would() {
        let error = |rename: &[&str]| Fields::renamed(rename.iter().copied()).unwrap_err().to_string();
        assert!(error(&["chosen"]).contains("write `field=column`"));
        assert!(error(&["better=a"]).contains("fields are prompt, "));
        assert!(error(&["chosen=a", "chosen=b"]).contains("renamed twice"));
    }
}
