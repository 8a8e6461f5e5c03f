//! What is fuzzed, and the laws that hold for any bytes.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use burn::tensor::Device;
use rl_algos::checkpoint::Checkpoint;
use rl_envs::preference::{Dataset, OnBad, ReadOptions};
use rl_models::lm::{LmConfig, Transformer};
use rl_models::text::{ChatTemplate, HfTokenizer, Message, Prompt, Specials, TextTokenizer};

use super::Target;

const ROW: &[&str] = &[
    "\"prompt\":",
    "\"chosen\":",
    "\"rejected\":",
    "\"label\":",
    "\"messages\":",
    "\"conversations\":",
    "\"role\":",
    "\"content\":",
    "\"from\":",
    "\"value\":",
    "\"margin\":",
    "\n\nHuman:",
    "\n\nAssistant:",
    "\n",
    "\r\n",
    "\"",
    ",",
    "\t",
    "{",
    "}",
    "[",
    "]",
    "prompt,chosen,rejected",
];
const HEADER: &[&str] = &[
    "__metadata__",
    "\"dtype\":\"F32\"",
    "\"dtype\":\"BF16\"",
    "\"dtype\":\"I64\"",
    "\"shape\":[",
    "\"data_offsets\":[0,",
    "\"rl-checkpoint\":",
    "\"rl-sha256\":",
    "model.layers.0.",
    ".weight",
];
const CONFIG: &[&str] = &[
    "\"model_type\":\"qwen2\"",
    "\"model_type\":\"gpt2\"",
    "\"hidden_size\":",
    "\"head_dim\":",
    "\"rope_scaling\":{",
    "\"rope_type\":\"default\"",
    "\"eos_token_id\":[",
    "\"num_attention_heads\":",
    "\"vocab_size\":",
    "\"n_embd\":",
];
const TEMPLATE: &[&str] = &[
    "{{",
    "}}",
    "{%",
    "%}",
    "{% for m in messages %}",
    "{% endfor %}",
    "{% if ",
    "{% endif %}",
    "{% set x = ",
    "m['content']",
    "|trim",
    "|tojson",
    ".strip()",
    ".split('",
    "namespace(a=1)",
    "loop.index0",
    "range(9)",
    "raise_exception('x')",
    "{% macro f(x) %}",
    "{% endmacro %}",
    "[::-1]",
    "{#",
    "#}",
];
const TOKENIZER: &[&str] = &[
    "\"type\":\"BPE\"",
    "\"type\":\"WordPiece\"",
    "\"type\":\"Unigram\"",
    "\"type\":\"WordLevel\"",
    "\"normalizer\":",
    "\"Replace\"",
    "\"pattern\":{\"Regex\":\"(a+)+$\"}",
    "\"added_tokens\":[",
    "\"special\":true",
    "\"merges\":[",
    "\"vocab\":{",
    "\"id\":",
    "\"padding\":{",
    "\"Fixed\":",
    "\"ByteLevel\"",
    "\"Metaspace\"",
    "\"Strip\"",
    "\"content\":\"",
];
const TEXT: &[&str] = &[
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "</s>",
    " ",
    "\n",
    "é",
    "\u{1f600}",
    "\u{301}",
    "ß",
    "<|",
    "|>",
];

/// Every entry point of the libraries.
pub const TARGETS: [Target; 11] = [
    Target { name: "preference_lines", run: lines, seeds: line_seeds, words: ROW, share: 1.0 },
    Target { name: "preference_array", run: array, seeds: array_seeds, words: ROW, share: 1.0 },
    Target { name: "preference_table", run: table, seeds: table_seeds, words: ROW, share: 1.0 },
    Target { name: "preference_gzip", run: gzip, seeds: gzip_seeds, words: &[], share: 0.5 },
    Target { name: "preference_parquet", run: parquet, seeds: parquet_seeds, words: &["PAR1"], share: 0.5 },
    Target { name: "model_config", run: config, seeds: config_seeds, words: CONFIG, share: 1.0 },
    Target { name: "model_weights", run: weights, seeds: weights_seeds, words: HEADER, share: 0.3 },
    Target { name: "checkpoint", run: checkpoint, seeds: checkpoint_seeds, words: HEADER, share: 1.0 },
    Target { name: "tokenizer_file", run: tokenizer, seeds: tokenizer_seeds, words: TOKENIZER, share: 0.2 },
    Target { name: "tokenizer_text", run: text, seeds: text_seeds, words: TEXT, share: 0.5 },
    Target { name: "chat_template", run: template, seeds: template_seeds, words: TEMPLATE, share: 0.5 },
];

/// Any bytes for the target called `name`.
///
/// # Panics
/// If a law is broken, or there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no target is called `{name}`")).run)(bytes);
}

thread_local! {
    /// A folder of this thread alone, in memory where the system has such a place.
    static SCRATCH: PathBuf = {
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let name = format!("rl-fuzz-{}-{:?}", std::process::id(), std::thread::current().id());
        let folder = base.join(name.replace(['(', ')'], ""));
        fs::create_dir_all(&folder).expect("a scratch folder can be made");
        folder
    };
    static TOKENIZERS: RefCell<Vec<TextTokenizer>> = const { RefCell::new(Vec::new()) };
}

fn written(name: &str, bytes: &[u8]) -> PathBuf {
    SCRATCH.with(|folder| {
        let path = folder.join(name);
        fs::write(&path, bytes).expect("the scratch folder can be written");
        path
    })
}

/// Reading says something of any file; what strict reading takes, lenient reading takes too.
fn preference(name: &str, bytes: &[u8]) {
    let path = written(name, bytes);
    let strict = Dataset::load(&path, &ReadOptions::default());
    let skip = ReadOptions { on_bad: OnBad::Skip, ..ReadOptions::default() };
    let lenient = Dataset::load(&path, &skip);
    match (strict, lenient) {
        (Ok(strict), Ok(lenient)) => assert!(strict == lenient, "lenient reading changed good rows"),
        (Ok(_), Err(error)) => panic!("only lenient reading fails: {error}"),
        (Err(error), _) => assert!(error.to_string().contains(name), "the error names no file: {error}"),
    }
}

fn lines(bytes: &[u8]) {
    preference("a.jsonl", bytes);
}

fn array(bytes: &[u8]) {
    preference("a.json", bytes);
}

fn table(bytes: &[u8]) {
    preference("a.csv", bytes);
}

fn gzip(bytes: &[u8]) {
    preference("a.jsonl.gz", bytes);
}

fn parquet(bytes: &[u8]) {
    preference("a.parquet", bytes);
}

/// A config that is read is written and read again as itself.
fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(config) = LmConfig::parse(text) {
        let again = LmConfig::parse(&config.to_json()).expect("what we write we read");
        assert_eq!(again, config);
    }
}

/// The weights of a folder whose `config.json` is well: they are read, or an error says why not.
fn weights(bytes: &[u8]) {
    let path = written("model.safetensors", bytes);
    let folder = path.parent().expect("a file has a folder");
    fs::write(folder.join("config.json"), TINY.to_json()).expect("the scratch folder can be written");
    if let Err(error) = Transformer::load(folder, &Device::flex()) {
        assert!(!error.to_string().is_empty());
    }
}

/// A checkpoint is read whole, or its error names it.
fn checkpoint(bytes: &[u8]) {
    match Checkpoint::parse(bytes, Path::new("x.safetensors")) {
        Ok(checkpoint) => {
            assert!(checkpoint.state != serde_json::Value::Null || checkpoint.tensors.len() < 9)
        }
        Err(error) => assert!(error.to_string().contains("x.safetensors")),
    }
}

fn tokenizer(bytes: &[u8]) {
    if let Ok(tokenizer) = HfTokenizer::parse(bytes) {
        let tokenizer = TextTokenizer::Hf(Box::new(tokenizer));
        for text in ["Hello  wörld, 12345", "", "<|im_start|>user"] {
            if let Ok(tokens) = tokenizer.encode(text) {
                let _ = tokenizer.decode(&tokens, Specials::Shown);
            }
        }
        let _ = tokenizer.decode(&[0, 1, u32::MAX], Specials::Hidden);
    }
}

/// Any text comes back from tokens that cover every byte, and nobody's text holds a special token.
fn text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    TOKENIZERS.with_borrow_mut(|known| {
        if known.is_empty() {
            known.extend(tokenizer_folders().iter().map(|it| TextTokenizer::load(it).expect("it loads")));
            known.push(TextTokenizer::Bytes);
        }
        for tokenizer in known.iter() {
            let tokens = tokenizer.encode_text(text).expect("any text has tokens");
            assert_eq!(tokenizer.decode(&tokens, Specials::Shown).expect("known tokens"), text);
            let hidden = tokenizer.decode(&tokens, Specials::Hidden).expect("known tokens");
            assert_eq!(hidden, text, "a special token came out of a text");
        }
    });
}

/// A template ends, and with the same text each time.
fn template(bytes: &[u8]) {
    let Ok(source) = std::str::from_utf8(bytes) else { return };
    let said = |role: &str, content: &str| Message { role: role.into(), content: content.into() };
    let messages = [said("system", "be brief"), said("user", "hi <|im_end|>"), said("assistant", "ho")];
    let template = ChatTemplate::new(source);
    let once = template.render(&messages, Prompt::Open);
    if let Ok(text) = once {
        assert_eq!(template.render(&messages, Prompt::Open).expect("it did before"), text);
    }
}

/// The smallest model.
static TINY: LazyLock<LmConfig> =
    LazyLock::new(|| LmConfig { intermediate: 4, max_positions: 8, ..LmConfig::llama(5, 4, 1, 2, 1) });

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/hf")
}

fn tokenizer_folders() -> [PathBuf; 2] {
    ["tokenizer_bpe2000_qwen2", "tokenizer_bpe300_gpt2"].map(|name| golden().join(name))
}

fn nasty(ending: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/nasty");
    let entries = fs::read_dir(folder).expect("the nasty files are there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

fn line_seeds() -> Vec<Vec<u8>> {
    nasty(".jsonl")
}

fn array_seeds() -> Vec<Vec<u8>> {
    let mut seeds = nasty(".json");
    seeds.retain(|it| !it.starts_with(b"{"));
    seeds
}

fn table_seeds() -> Vec<Vec<u8>> {
    let rows = "p,\"a, \"\"b\"\"\",c,0.5\nq,é,\"two\nlines\",2\n";
    [
        ("prompt,chosen,rejected,margin\n", ","),
        ("input,output_1,output_2,label\n", ","),
        ("prompt\tchosen\trejected\tmargin\n", "\t"),
    ]
    .map(|(head, separator)| format!("{head}{}", rows.replace(',', separator)).into_bytes())
    .into()
}

fn gzip_seeds() -> Vec<Vec<u8>> {
    nasty(".gz")
}

fn parquet_seeds() -> Vec<Vec<u8>> {
    vec![include_bytes!("pairs.parquet").to_vec()]
}

fn config_seeds() -> Vec<Vec<u8>> {
    ["gpt2", "llama_tied", "llama_untied", "qwen2"]
        .map(|name| fs::read(golden().join(name).join("config.json")).expect("golden models have configs"))
        .into()
}

fn weights_seeds() -> Vec<Vec<u8>> {
    use rand::SeedableRng;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let model = Transformer::new(TINY.clone(), &mut rng, &Device::flex());
    let folder = written("x", b"").parent().expect("a file has a folder").join("seed");
    model.save(&folder, rl_models::lm::FloatFormat::F32).expect("the scratch folder can be written");
    let ours = fs::read(folder.join("model.safetensors")).expect("it was written");
    // Without a checksum, as strangers write them: what was changed is looked at.
    let strangers = String::from_utf8_lossy(&ours[8..64]).contains("rl-sha256");
    assert!(strangers, "the checksum has moved");
    let unchecked = ours.windows(9).position(|it| it == b"rl-sha256").expect("it has one");
    let mut strangers = ours.clone();
    strangers[unchecked] = b'x';
    vec![ours, strangers]
}

fn checkpoint_seeds() -> Vec<Vec<u8>> {
    let state = serde_json::json!({"update": 3, "rng": [1, 2, 3], "x": 0.1});
    let tensors = [("adam.m".to_owned(), vec![0.5; 7]), ("model".to_owned(), vec![1.0, -0.0, 3.0])].into();
    let path = written("c.safetensors", b"");
    Checkpoint { state, tensors }.save(&path).expect("the scratch folder can be written");
    vec![fs::read(path).expect("it was written")]
}

fn tokenizer_seeds() -> Vec<Vec<u8>> {
    let tiny = r#"{"version":"1.0","truncation":null,"padding":{"strategy":{"Fixed":9},"direction":"Left","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"a"},"added_tokens":[{"id":3,"content":"<|im_start|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},{"type":"Replace","pattern":{"String":" "},"content":"_"}]},"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\s+|\\w+"},"behavior":"Isolated","invert":false},"post_processor":null,"decoder":{"type":"Strip","content":"_","start":1,"stop":0},"model":{"type":"BPE","dropout":null,"unk_token":"a","continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}"#;
    let words = r#"{"version":"1.0","added_tokens":[],"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":null,"decoder":{"type":"WordPiece","prefix":"\u0023\u0023","cleanup":true},"model":{"type":"WordPiece","unk_token":"u","continuing_subword_prefix":"\u0023\u0023","max_input_chars_per_word":100,"vocab":{"u":0,"hello":1,",":2}}}"#;
    let pieces = r#"{"version":"1.0","added_tokens":[],"normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"always"},"decoder":{"type":"Metaspace","replacement":"_","prepend_scheme":"always"},"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0.0],["_",-1.0],["he",-2.0],["l",-3.0]],"byte_fallback":false}}"#;
    let bytes = fs::read(tokenizer_folders()[1].join("tokenizer.json")).expect("a golden tokenizer");
    vec![tiny.into(), words.into(), pieces.into(), bytes]
}

fn text_seeds() -> Vec<Vec<u8>> {
    [
        "Once upon a time,  there was a\tKäfer.\n\n1234567890",
        "<|im_start|>user\nhi<|im_end|>\n",
        "👩‍👩‍👧 ﷽ \u{0}\u{7f}",
        "  ",
    ]
    .map(|it| it.as_bytes().to_vec())
    .into()
}

fn template_seeds() -> Vec<Vec<u8>> {
    let own =
        tokenizer_folders().map(|it| fs::read(it.join("chat_template.jinja")).expect("a golden template"));
    let odd = "{% set ns = namespace(a='') %}{% for m in messages %}{% set ns.a = ns.a + m['content'].strip() %}{{ m.role|upper }}\
               {% if not loop.last %}{{ ns.a[:9]|tojson }}{% endif %}{% endfor %}{{ 'x' * 3 }}{{ '%5d'|format(3) }}";
    own.into_iter().chain([odd.into()]).collect()
}
