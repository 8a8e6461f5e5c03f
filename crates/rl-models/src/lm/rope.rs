//! Rotary frequencies, and how models stretch them over texts longer than those they were first trained on.

use std::f64::consts::TAU;

use serde_json::{Value, json};

use super::hf::HfError;

/// How the frequencies `f_i = base^(−2i/d)` are changed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum RopeScaling {
    /// Not at all.
    #[default]
    Off,
    /// `f/s`: positions are squeezed.   Chen et al. 2023, eq. 4
    Linear {
        /// s
        factor: f64,
    },
    /// The base grows once a text is longer than `max_positions`, which this crate does not allow: no change.
    Dynamic {
        /// s
        factor: f64,
    },
    /// `f` where its wave is short, `f/s` where it is long, in between both by share.   Llama 3.1
    Llama3 {
        /// s
        factor: f64,
        /// Waves longer than `original/low` are stretched.
        low: f64,
        /// Waves shorter than `original/high` are not.
        high: f64,
        /// Positions of the first training.
        original: f64,
    },
    /// As Llama 3, by rank of the frequency, and attention is made sharper.   Peng et al. 2023, §3.2–3.4
    Yarn {
        /// s
        factor: f64,
        /// Turns within `original` from which on a frequency stays.
        fast: f64,
        /// Turns up to which it is divided.
        slow: f64,
        /// Positions of the first training.
        original: f64,
        /// What cosines and sines are multiplied by.
        attention: f64,
    },
}

impl RopeScaling {
    /// The frequency of each of the `d/2` pairs, and what cosines and sines are multiplied by.
    pub fn frequencies(&self, head_dim: usize, base: f64) -> (Vec<f64>, f64) {
        let d = head_dim as f64;
        let plain = |i: usize| base.powf(-2.0 * i as f64 / d);
        let all = |f: &dyn Fn(usize) -> f64| (0..head_dim / 2).map(f).collect::<Vec<f64>>();
        match *self {
            Self::Off | Self::Dynamic { .. } => (all(&plain), 1.0),
            Self::Linear { factor } => (all(&|i| plain(i) / factor), 1.0),
            Self::Llama3 { factor, low, high, original } => {
                let stretched = |i: usize| {
                    let (f, wave) = (plain(i), TAU / plain(i));
                    let share = ((original / wave - low) / (high - low)).clamp(0.0, 1.0);
                    (1.0 - share) * f / factor + share * f
                };
                (all(&stretched), 1.0)
            }
            Self::Yarn { factor, fast, slow, original, attention } => {
                // The pair that turns this often within the first training's positions.
                let pair = |turns: f64| d * (original / (turns * TAU)).ln() / (2.0 * base.ln());
                let (first, last) = (pair(fast).floor().max(0.0), pair(slow).ceil().min(d - 1.0));
                let width = if first == last { 1e-3 } else { last - first };
                let stretched = |i: usize| {
                    let divided = ((i as f64 - first) / width).clamp(0.0, 1.0);
                    plain(i) / factor * divided + plain(i) * (1.0 - divided)
                };
                (all(&stretched), attention)
            }
        }
    }

    /// The scaling under `key` of a `config.json`.
    ///
    /// # Errors
    /// Names what is missing, out of range, or not done here.
    pub(crate) fn parse(json: &Value, key: &str, max_positions: usize) -> Result<Self, HfError> {
        let of = |name: &str, default: Option<f64>| match (&json[name], default) {
            (Value::Null, Some(default)) => Ok(default),
            (Value::Null, None) => Err(HfError::Config(format!("`{key}.{name}` is missing"))),
            (value, _) => match value.as_f64().filter(|x| x.is_finite() && *x > 0.0) {
                Some(x) => Ok(x),
                None => {
                    Err(HfError::Config(format!("`{key}.{name}` is {value}; it must be a positive number")))
                }
            },
        };
        let kind = json["rope_type"].as_str().or(json["type"].as_str()).unwrap_or("default");
        match kind {
            "default" => Ok(Self::Off),
            "linear" => Ok(Self::Linear { factor: of("factor", None)? }),
            "dynamic" => Ok(Self::Dynamic { factor: of("factor", None)? }),
            "llama3" => Ok(Self::Llama3 {
                factor: of("factor", None)?,
                low: of("low_freq_factor", None)?,
                high: of("high_freq_factor", None)?,
                original: of("original_max_position_embeddings", None)?,
            }),
            "yarn" => {
                for name in ["mscale", "mscale_all_dim", "truncate"] {
                    if !json[name].is_null() {
                        return Err(HfError::unsupported(
                            &format!("{key}.{name}"),
                            &json[name].to_string(),
                            "none",
                        ));
                    }
                }
                let factor = of("factor", None)?;
                Ok(Self::Yarn {
                    factor,
                    fast: of("beta_fast", Some(32.0))?,
                    slow: of("beta_slow", Some(1.0))?,
                    original: of("original_max_position_embeddings", Some(max_positions as f64))?,
                    attention: of(
                        "attention_factor",
                        Some(if factor > 1.0 { 0.1 * factor.ln() + 1.0 } else { 1.0 }),
                    )?,
                })
            }
            other => {
                let known = "default, linear, dynamic, llama3 or yarn";
                Err(HfError::unsupported(&format!("{key}.rope_type"), other, known))
            }
        }
    }

    /// What [`RopeScaling::parse`] reads; null where there is none.
    pub(crate) fn to_json(self) -> Value {
        match self {
            Self::Off => Value::Null,
            Self::Linear { factor } => json!({ "rope_type": "linear", "factor": factor }),
            Self::Dynamic { factor } => json!({ "rope_type": "dynamic", "factor": factor }),
            Self::Llama3 { factor, low, high, original } => json!({
                "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                "original_max_position_embeddings": original as u64,
            }),
            Self::Yarn { factor, fast, slow, original, attention } => json!({
                "rope_type": "yarn", "factor": factor, "beta_fast": fast, "beta_slow": slow,
                "original_max_position_embeddings": original as u64, "attention_factor": attention,
            }),
        }
    }
}
