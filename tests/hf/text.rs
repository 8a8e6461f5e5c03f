//! Tokenizers and chat templates equal those of the tokenizers and transformers libraries.

use std::path::Path;

use rl_models::text::{ChatTemplate, Message, Prompt, Specials, TextTokenizer};
use serde::Deserialize;
use serde_json::Value;

use crate::case::{folders, numbers};

fn tokens(value: &Value) -> Vec<u32> {
    numbers(value).into_iter().map(|x| x as u32).collect()
}

fn each(check: impl Fn(&str, &Path, &TextTokenizer, &Value) -> usize) {
    let checked: usize = folders(|function| function == "tokenizer")
        .iter()
        .map(|(name, folder, cases)| {
            check(name, folder, &TextTokenizer::load(folder).expect("the tokenizer loads"), cases)
        })
        .sum();
    println!("hf text: {checked} cases");
    assert!(checked > 0, "there are no cases");
}

#[test]
fn text_is_cut_into_the_same_tokens_and_put_together_again() {
    each(|name, _, tokenizer, cases| {
        let encode = cases["encode"].as_array().expect("a list of cases");
        for case in encode {
            let ids = tokens(&case["ids"]);
            let text = case["text"].as_str().expect("a text");
            assert_eq!(tokenizer.encode(text).expect("any text has tokens"), ids, "{name}, {text:?}");
            let decoded = |specials| Value::from(tokenizer.decode(&ids, specials).expect("known tokens"));
            assert_eq!(decoded(Specials::Shown), case["decoded"], "{name}, {text:?}");
            assert_eq!(decoded(Specials::Hidden), case["decoded_skip_special"], "{name}, {text:?}");
        }
        let decode = cases["decode"].as_array().expect("a list of cases");
        for case in decode {
            let text = tokenizer.decode(&tokens(&case["ids"]), Specials::Shown).expect("known tokens");
            assert_eq!(Value::from(text), case["decoded"], "{name}");
        }
        encode.len() + decode.len()
    });
}

#[test]
fn conversations_are_written_down_as_the_model_expects() {
    each(|name, folder, tokenizer, cases| {
        let template = ChatTemplate::load(folder).expect("the template loads");
        let chats = cases["chat"].as_array().expect("a list of cases");
        for case in chats {
            let messages = Vec::<Message>::deserialize(&case["messages"]).expect("roles and contents");
            let prompt = if case["add_generation_prompt"] == true { Prompt::Open } else { Prompt::Closed };
            let text = template.render(&messages, prompt).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(Value::from(text.as_str()), case["text"], "{name}");
            assert_eq!(tokenizer.encode(&text).expect("any text has tokens"), tokens(&case["ids"]), "{name}");
        }
        chats.len()
    });
}
