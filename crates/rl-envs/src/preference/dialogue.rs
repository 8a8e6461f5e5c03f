//! Dialogues: turns with roles, and where the answer begins.

use super::error::Fault;
use super::json::Json;
use super::{Message, Prompt, Role};

/// What stands before the model's turns in the Anthropic dialogues.
const ASSISTANT: &str = "\n\nAssistant:";

/// One turn, as `{role, content}` or `{from, value}`.
pub(super) fn message(field: &str, turn: &Json<'_>) -> Result<Message, Fault> {
    let kind = |key: &str, want, found: &Json<'_>| Fault::Kind {
        field: format!("{field}.{key}"),
        want,
        found: found.kind(),
    };
    let [role_key, content_key] =
        if turn.get("from").is_some() { ["from", "value"] } else { ["role", "content"] };
    let Json::Object(_) = turn else {
        let want = "a message, `{role, content}` or `{from, value}`";
        return Err(Fault::Kind { field: field.to_owned(), want, found: turn.kind() });
    };
    let of = |key: &str| turn.get(key).unwrap_or(&Json::Null);
    let Json::Text(name) = of(role_key) else { return Err(kind(role_key, "a role", of(role_key))) };
    let role = match name.as_ref() {
        "system" => Role::System,
        "user" | "human" => Role::User,
        "assistant" | "gpt" => Role::Assistant,
        "tool" | "observation" => Role::Tool,
        other => {
            return Err(Fault::Role { field: format!("{field}.{role_key}"), found: other.to_owned() });
        }
    };
    let Json::Text(content) = of(content_key) else { return Err(kind(content_key, "text", of(content_key))) };
    Ok(Message { role, content: content.to_string() })
}

/// A list of turns.
pub(super) fn messages(field: &str, list: &Json<'_>) -> Result<Vec<Message>, Fault> {
    let Json::List(turns) = list else {
        return Err(Fault::Kind { field: field.to_owned(), want: "a list of messages", found: list.kind() });
    };
    turns.iter().map(|turn| message(field, turn)).collect()
}

/// The turns before the answer, and the answer: the assistant's last turn.
pub(super) fn split(field: &str, mut turns: Vec<Message>) -> Result<(Vec<Message>, String), Fault> {
    match turns.pop() {
        Some(Message { role: Role::Assistant, content }) => Ok((turns, content)),
        last => {
            let found =
                last.map_or("it has no turns".to_owned(), |it| format!("it ends with {:?}'s", it.role));
            Err(Fault::NoAnswer { field: field.to_owned(), found })
        }
    }
}

/// The dialogue up to its last `\n\nAssistant:`, and the answer behind it.
pub(super) fn split_text<'a>(field: &str, dialogue: &'a str) -> Result<(&'a str, &'a str), Fault> {
    let at = dialogue.rfind(ASSISTANT).ok_or_else(|| Fault::NoAnswer {
        field: field.to_owned(),
        found: "it holds no `\\n\\nAssistant:` (a plain answer needs a column `prompt` beside it)".to_owned(),
    })?;
    Ok(dialogue.split_at(at + ASSISTANT.len()))
}

/// The prompt that two dialogues share.
pub(super) fn shared<T: AsRef<[u8]>>(chosen: T, rejected: T) -> Result<T, Fault> {
    let (a, b) = (chosen.as_ref(), rejected.as_ref());
    if a == b {
        return Ok(chosen);
    }
    let byte = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    Err(Fault::PromptsDiffer { byte })
}

/// The whole prompt of a chat: an explicit one, and the turns that both sides repeat or add.
pub(super) fn joined(explicit: Option<Prompt>, turns: Vec<Message>) -> Prompt {
    let explicit = match explicit {
        None => return Prompt::Messages(turns),
        Some(Prompt::Text(content)) => vec![Message { role: Role::User, content }],
        Some(Prompt::Messages(messages)) => messages,
    };
    // Some files repeat the prompt inside both sides.
    let repeats = !explicit.is_empty() && turns.windows(explicit.len()).any(|part| part == explicit);
    Prompt::Messages(if repeats { turns } else { explicit.into_iter().chain(turns).collect() })
}
