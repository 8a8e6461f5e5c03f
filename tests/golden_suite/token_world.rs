//! The token world: a file of whole worlds instead of inputs and outputs.

use rl_tests::token_world_vectors::{FUNCTION, check};

use crate::compare::Comparison;
use crate::suite::{Formula::OwnSchema, Formulas};

pub const FORMULAS: Formulas = &[(
    FUNCTION,
    OwnSchema(|file| {
        let (compared, faults) = check(file);
        Comparison { compared, faults }
    }),
)];
