//! Language models against transformers: logits, log-probs, greedy text, gradients and training losses of the folders
//! under `hf/` of the golden vectors, and of a real story model.
//!
//! `RL_GOLDEN_DIR` names another folder of vectors; `RL_DATA_DIR` holds the third-party models, whose tests say so when
//! they are skipped.

mod actor_critic;
mod case;
mod folder;
mod forward;
mod laws;
mod lora;
mod reward;
mod reward_folder;
mod sft;
mod stories;
mod text;
mod training;
mod writing;
