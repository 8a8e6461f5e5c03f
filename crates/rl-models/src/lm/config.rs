//! The shape of a causal language model, and `config.json`.

use serde_json::Value;

use super::hf::HfError;
use super::rope::RopeScaling;

/// Which open family a model belongs to: what its files call things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// Llama, SmolLM, TinyStories: `model.layers.N.self_attn…`.
    Llama,
    /// Llama's names, with biases on q, k and v.
    Qwen2,
    /// `transformer.h.N.attn.c_attn…`, weights stored `[in, out]`.
    Gpt2,
}

/// How a token's place reaches the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Positions {
    /// Queries and keys are turned by an angle: `θ_i = position · base^(−2i/d)`.   Su et al. 2021, eq. 34
    Rotary {
        /// Base of the frequencies.
        base: f64,
        /// How they are stretched.
        scaling: RopeScaling,
    },
    /// A vector per position is added to the token's.
    Learned,
}

/// The shape of a [`Transformer`](super::Transformer).
#[derive(Debug, Clone, PartialEq)]
pub struct LmConfig {
    /// The family.
    pub architecture: Architecture,
    /// Tokens `V`.
    pub vocabulary: usize,
    /// Width of the residual stream `D`.
    pub hidden: usize,
    /// Width of the feed-forward layer.
    pub intermediate: usize,
    /// Blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Tokens the model can look back on.
    pub max_positions: usize,
    /// ε inside the norms' square root.
    pub norm_eps: f64,
    /// How places are told apart.
    pub positions: Positions,
    /// Whether q, k and v have biases.
    pub qkv_bias: bool,
    /// Whether the attention's output has a bias.
    pub out_bias: bool,
    /// Whether the feed-forward layers have biases.
    pub mlp_bias: bool,
    /// Whether the output layer is the embedding, transposed.
    pub tied: bool,
    /// The token that opens a text, where the file names one.
    pub bos: Option<u32>,
    /// The tokens that end a text.
    pub eos: Vec<u32>,
    /// The token that fills gaps; `eos`, else 0, where the file names none.
    pub pad: u32,
}

impl LmConfig {
    /// A small Llama: what a model trained from scratch looks like.
    pub fn llama(vocabulary: usize, hidden: usize, layers: usize, heads: usize, kv_heads: usize) -> Self {
        Self {
            architecture: Architecture::Llama,
            vocabulary,
            hidden,
            intermediate: (hidden * 8 / 3).next_multiple_of(4),
            layers,
            heads,
            kv_heads,
            head_dim: hidden / heads,
            max_positions: 1024,
            norm_eps: 1e-5,
            positions: Positions::Rotary { base: 1e4, scaling: RopeScaling::Off },
            qkv_bias: false,
            out_bias: false,
            mlp_bias: false,
            tied: true,
            bos: Some(1),
            eos: vec![2],
            pad: 0,
        }
    }

    /// Reads the text of a `config.json`.
    ///
    /// # Errors
    /// Names the key that is missing, of another kind, out of range, or asks for something this crate does not do.
    ///
    /// ```
    /// use rl_models::lm::LmConfig;
    ///
    /// let refused = LmConfig::parse(r#"{"model_type": "mamba"}"#).unwrap_err().to_string();
    /// assert!(refused.contains("model_type") && refused.contains("llama, qwen2 or gpt2"), "{refused}");
    /// let config = LmConfig::llama(512, 256, 4, 4, 4);
    /// assert_eq!(LmConfig::parse(&config.to_json()).unwrap(), config);
    /// ```
    pub fn parse(text: &str) -> Result<Self, HfError> {
        let json: Value = serde_json::from_str(text).map_err(|e| HfError::Config(e.to_string()))?;
        let file = ConfigFile(&json);
        let config = match file.0["model_type"].as_str() {
            Some("llama") => file.llama(Architecture::Llama)?,
            Some("qwen2") => file.llama(Architecture::Qwen2)?,
            Some("gpt2") => file.gpt2()?,
            other => {
                let found = other.unwrap_or("nothing");
                return Err(HfError::unsupported("model_type", found, "llama, qwen2 or gpt2"));
            }
        };
        config.validate()?;
        Ok(config)
    }

    /// Checks that the sizes fit together.
    ///
    /// # Errors
    /// Names the first that does not.
    pub fn validate(&self) -> Result<(), HfError> {
        let fits = |ok: bool, what: &str| if ok { Ok(()) } else { Err(HfError::Config(what.to_owned())) };
        fits(
            self.heads > 0 && self.kv_heads > 0,
            "`num_attention_heads` and `num_key_value_heads` must be positive",
        )?;
        let groups = self.heads.is_multiple_of(self.kv_heads);
        fits(groups, "`num_attention_heads` must be a multiple of `num_key_value_heads`")?;
        let rotary = self.positions != Positions::Learned;
        fits(!rotary || self.head_dim.is_multiple_of(2), "rotary positions need an even `head_dim`")?;
        let sizes = [self.vocabulary, self.hidden, self.head_dim, self.intermediate, self.max_positions];
        fits(sizes.iter().all(|&n| n > 0), "sizes must be positive")?;
        let wide = self.heads.saturating_mul(self.head_dim);
        let whole = self.architecture != Architecture::Gpt2 || wide == self.hidden;
        fits(whole, "`n_embd` must be a multiple of `n_head`")?;
        let largest =
            [self.vocabulary, self.hidden, self.intermediate, self.max_positions, self.layers, wide];
        fits(largest.iter().all(|&n| n <= 1 << 24), "a size above 16,777,216 is no language model's")
    }

    /// The text of a `config.json` that gives this config again.
    pub fn to_json(&self) -> String {
        let eos = match self.eos.as_slice() {
            [] => Value::Null,
            [one] => (*one).into(),
            many => many.to_vec().into(),
        };
        let json = match self.architecture {
            Architecture::Gpt2 => serde_json::json!({
                "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "activation_function": "gelu_new",
                "vocab_size": self.vocabulary, "n_embd": self.hidden, "n_inner": self.intermediate,
                "n_layer": self.layers, "n_head": self.heads, "n_positions": self.max_positions,
                "n_ctx": self.max_positions, "layer_norm_epsilon": self.norm_eps,
                "tie_word_embeddings": self.tied, "bos_token_id": self.bos, "eos_token_id": eos,
                "pad_token_id": self.pad, "torch_dtype": "float32",
            }),
            _ => {
                let (name, kind) = match self.architecture {
                    Architecture::Qwen2 => ("Qwen2ForCausalLM", "qwen2"),
                    _ => ("LlamaForCausalLM", "llama"),
                };
                let Positions::Rotary { base, scaling } = self.positions else {
                    panic!("Llama's positions are rotary")
                };
                let mut json = serde_json::json!({
                    "architectures": [name], "model_type": kind, "hidden_act": "silu",
                    "vocab_size": self.vocabulary, "hidden_size": self.hidden,
                    "intermediate_size": self.intermediate, "num_hidden_layers": self.layers,
                    "num_attention_heads": self.heads, "num_key_value_heads": self.kv_heads,
                    "head_dim": self.head_dim, "max_position_embeddings": self.max_positions,
                    "rms_norm_eps": self.norm_eps, "rope_theta": base, "attention_bias": self.out_bias,
                    "mlp_bias": self.mlp_bias, "tie_word_embeddings": self.tied, "bos_token_id": self.bos,
                    "eos_token_id": eos, "pad_token_id": self.pad, "torch_dtype": "float32",
                });
                if scaling != RopeScaling::Off {
                    json["rope_scaling"] = scaling.to_json();
                }
                json
            }
        };
        serde_json::to_string_pretty(&json).expect("numbers become JSON") + "\n"
    }
}

/// A parsed `config.json`.
struct ConfigFile<'a>(&'a Value);

impl ConfigFile<'_> {
    fn size(&self, key: &str) -> Result<usize, HfError> {
        self.optional_size(key)?.ok_or_else(|| HfError::Config(format!("`{key}` is missing")))
    }

    fn optional_size(&self, key: &str) -> Result<Option<usize>, HfError> {
        match &self.0[key] {
            Value::Null => Ok(None),
            value => match value.as_u64() {
                Some(n) => Ok(Some(n as usize)),
                None => Err(HfError::Config(format!("`{key}` is {value}; it must be a whole number"))),
            },
        }
    }

    fn number(&self, key: &str, default: f64) -> Result<f64, HfError> {
        match &self.0[key] {
            Value::Null => Ok(default),
            value => match value.as_f64() {
                Some(x) if x.is_finite() && x > 0.0 => Ok(x),
                _ => Err(HfError::Config(format!("`{key}` is {value}; it must be a positive number"))),
            },
        }
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool, HfError> {
        match &self.0[key] {
            Value::Null => Ok(default),
            Value::Bool(flag) => Ok(*flag),
            value => Err(HfError::Config(format!("`{key}` is {value}; it must be true or false"))),
        }
    }

    fn require(&self, key: &str, wanted: &str) -> Result<(), HfError> {
        match &self.0[key] {
            Value::Null => Ok(()),
            Value::String(found) if found == wanted => Ok(()),
            found => Err(HfError::unsupported(key, &found.to_string(), wanted)),
        }
    }

    fn token(&self, key: &str, vocabulary: usize) -> Result<Option<u32>, HfError> {
        Ok(self.tokens(key, vocabulary)?.first().copied())
    }

    /// One token, a list of tokens, or nothing.
    fn tokens(&self, key: &str, vocabulary: usize) -> Result<Vec<u32>, HfError> {
        let wrong = |value: &Value| {
            HfError::Config(format!("`{key}` is {value}; it must be a token below {vocabulary}"))
        };
        let one = |value: &Value| match value.as_u64() {
            Some(n) if (n as usize) < vocabulary => Ok(n as u32),
            _ => Err(wrong(value)),
        };
        match &self.0[key] {
            Value::Null => Ok(vec![]),
            Value::Array(many) => many.iter().map(one).collect(),
            value => Ok(vec![one(value)?]),
        }
    }

    /// The rotary base and its scaling.
    fn rotary(&self, max_positions: usize) -> Result<Positions, HfError> {
        let mut scaling = RopeScaling::Off;
        for key in ["rope_scaling", "rope_parameters"] {
            if self.0[key].is_object() {
                scaling = RopeScaling::parse(&self.0[key], key, max_positions)?;
            }
        }
        let nested = ConfigFile(&self.0["rope_parameters"]);
        let base = match nested.0["rope_theta"] {
            Value::Null => self.number("rope_theta", 1e4)?,
            _ => nested.number("rope_theta", 1e4)?,
        };
        Ok(Positions::Rotary { base, scaling })
    }

    fn llama(&self, architecture: Architecture) -> Result<LmConfig, HfError> {
        self.require("hidden_act", "silu")?;
        if self.flag("use_sliding_window", false)? {
            return Err(HfError::unsupported("use_sliding_window", "true", "false"));
        }
        let (vocabulary, hidden) = (self.size("vocab_size")?, self.size("hidden_size")?);
        let heads = self.size("num_attention_heads")?;
        let attention_bias = self.flag("attention_bias", false)?;
        let eos = self.tokens("eos_token_id", vocabulary)?;
        let max_positions = self.optional_size("max_position_embeddings")?.unwrap_or(2048);
        Ok(LmConfig {
            architecture,
            vocabulary,
            hidden,
            intermediate: self.size("intermediate_size")?,
            layers: self.size("num_hidden_layers")?,
            heads,
            kv_heads: self.optional_size("num_key_value_heads")?.unwrap_or(heads),
            head_dim: self.optional_size("head_dim")?.unwrap_or(hidden / heads.max(1)),
            max_positions,
            norm_eps: self.number("rms_norm_eps", 1e-6)?,
            positions: self.rotary(max_positions)?,
            qkv_bias: attention_bias || architecture == Architecture::Qwen2,
            out_bias: attention_bias,
            mlp_bias: self.flag("mlp_bias", false)?,
            tied: self.flag("tie_word_embeddings", false)?,
            bos: self.token("bos_token_id", vocabulary)?,
            pad: self.token("pad_token_id", vocabulary)?.or(eos.first().copied()).unwrap_or(0),
            eos,
        })
    }

    fn gpt2(&self) -> Result<LmConfig, HfError> {
        self.require("activation_function", "gelu_new")?;
        if self.flag("scale_attn_by_inverse_layer_idx", false)? {
            return Err(HfError::unsupported("scale_attn_by_inverse_layer_idx", "true", "false"));
        }
        let (vocabulary, hidden, heads) =
            (self.size("vocab_size")?, self.size("n_embd")?, self.size("n_head")?);
        let eos = self.tokens("eos_token_id", vocabulary)?;
        Ok(LmConfig {
            architecture: Architecture::Gpt2,
            vocabulary,
            hidden,
            intermediate: self.optional_size("n_inner")?.unwrap_or(hidden.saturating_mul(4)),
            layers: self.size("n_layer")?,
            heads,
            kv_heads: heads,
            head_dim: hidden / heads.max(1),
            max_positions: self.optional_size("n_positions")?.unwrap_or(1024),
            norm_eps: self.number("layer_norm_epsilon", 1e-5)?,
            positions: Positions::Learned,
            qkv_bias: true,
            out_bias: true,
            mlp_bias: true,
            tied: self.flag("tie_word_embeddings", true)?,
            bos: self.token("bos_token_id", vocabulary)?,
            pad: self.token("pad_token_id", vocabulary)?.or(eos.first().copied()).unwrap_or(0),
            eos,
        })
    }
}
