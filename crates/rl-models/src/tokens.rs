//! Token sequences: a batch of prompts, padded on the left, and the responses that follow them.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use crate::traits::Rows;

/// `R` sequences of `S = P + L` tokens: `P` columns of prompt, padded on the left, then `L` columns
/// of response, padded on the right.
///
/// A [`Policy`](crate::Policy) over `Tokens` answers with `N = R·L` laws `[R·L, V]`: decision
/// `r·L + t` is the choice of `ids[r, P + t]`, seen from the tokens before it. Padding is never
/// seen, and the laws of padded decisions are finite but mean nothing: mask them.
///
/// ```
/// use burn::tensor::Device;
/// use rl_models::Tokens;
///
/// let (short, long): (&[u32], &[u32]) = (&[5], &[6, 7, 8]);
/// let batch = Tokens::new(&[(short, &[9, 2]), (long, &[2])], 0, &Device::flex());
/// assert_eq!((batch.prompt, batch.response()), (3, 2));
/// let ids: Vec<i32> = batch.ids.into_data().iter::<i32>().collect();
/// assert_eq!(ids, [0, 0, 5, 9, 2, 6, 7, 8, 2, 0]);
/// ```
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Token numbers `[R, S]`; any valid number where `real` is false.
    pub ids: Tensor<2, Int>,
    /// Which are tokens `[R, S]`; false is padding.
    pub real: Tensor<2, Bool>,
    /// Columns of prompt, `P`.
    pub prompt: usize,
}

impl Tokens {
    /// Batches `(prompt, response)` pairs of any lengths; `pad` fills the gaps.
    ///
    /// Panics without pairs.
    pub fn new(pairs: &[(&[u32], &[u32])], pad: u32, device: &Device) -> Self {
        let longest =
            |lengths: &mut dyn Iterator<Item = usize>| lengths.max().expect("at least one sequence");
        let prompt = longest(&mut pairs.iter().map(|(prompt, _)| prompt.len()));
        let response = longest(&mut pairs.iter().map(|(_, response)| response.len()));
        let (rows, columns) = (pairs.len(), prompt + response);
        let mut ids = vec![i64::from(pad); rows * columns];
        let mut real = vec![false; rows * columns];
        for (r, (before, after)) in pairs.iter().enumerate() {
            let first = r * columns + prompt - before.len();
            for (at, &token) in (first..).zip(before.iter().chain(after.iter())) {
                ids[at] = i64::from(token);
                real[at] = true;
            }
        }
        Self {
            ids: Tensor::from_data(TensorData::new(ids, [rows, columns]), device),
            real: Tensor::from_data(TensorData::new(real, [rows, columns]), device),
            prompt,
        }
    }

    /// Columns of response, `L`: the decisions of each row.
    pub fn response(&self) -> usize {
        self.ids.dims()[1] - self.prompt
    }

    /// The response's tokens, one per decision `[R·L]`.
    pub fn actions(&self) -> Tensor<1, Int> {
        let (rows, l) = (self.rows(), self.response());
        self.ids.clone().narrow(1, self.prompt, l).reshape([rows * l])
    }

    /// Which decisions are real `[R·L]`.
    pub fn mask(&self) -> Tensor<1, Bool> {
        let (rows, l) = (self.rows(), self.response());
        self.real.clone().narrow(1, self.prompt, l).reshape([rows * l])
    }
}

impl Rows for Tokens {
    fn rows(&self) -> usize {
        self.ids.dims()[0]
    }

    fn select(&self, indices: Tensor<1, Int>) -> Self {
        Self {
            ids: self.ids.clone().select(0, indices.clone()),
            real: self.real.clone().select(0, indices),
            prompt: self.prompt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_padded_on_the_left_and_responses_on_the_right() {
        let tokens = Tokens::new(&[(&[5, 6], &[7]), (&[8], &[9, 4])], 0, &Device::flex());
        assert_eq!(
            tokens.ids.clone().into_data().try_into_vec_as::<i64>().unwrap(),
            [5, 6, 7, 0, 0, 8, 9, 4]
        );
        assert_eq!((tokens.prompt, tokens.response(), tokens.rows()), (2, 2, 2));
        assert_eq!(tokens.actions().into_data().try_into_vec_as::<i64>().unwrap(), [7, 0, 9, 4]);
        assert_eq!(tokens.mask().into_data().try_into_vec_as::<bool>().unwrap(), [true, false, true, true]);
    }
}
