//! Random changes to known inputs.

use rand::{Rng, RngExt};

/// Numbers at the edges of what formats count with.
const EDGES: [&str; 12] = [
    "0",
    "-1",
    "1e999",
    "1e-999",
    "NaN",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "1000000000000",
    "0.1",
    "null",
    "[[[[[[[[",
];

/// The longest input.
const MOST: usize = 1 << 16;

/// One of `corpus` with one to eight changes.
pub fn mutated<R: Rng + ?Sized>(corpus: &[Vec<u8>], words: &[&str], rng: &mut R) -> Vec<u8> {
    let mut input = corpus[rng.random_range(0..corpus.len())].clone();
    for _ in 0..1 << rng.random_range(0..4) {
        change(&mut input, corpus, words, rng);
    }
    input.truncate(MOST);
    input
}

fn change<R: Rng + ?Sized>(input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[&str], rng: &mut R) {
    let n = input.len();
    let at = rng.random_range(0..=n);
    match rng.random_range(0..9) {
        // One bit, one byte.
        0 if at < n => input[at] ^= 1 << rng.random_range(0..8),
        1 if at < n => input[at] = rng.random(),
        // A piece goes, is doubled, or comes from elsewhere.
        2 => drop(input.drain(at..(at + length(rng)).min(n))),
        3 => {
            let piece = input[at..(at + length(rng)).min(n)].to_vec();
            let times = 1 << rng.random_range(0..6);
            (0..times).for_each(|_| drop(input.splice(at..at, piece.iter().copied())));
        }
        4 => {
            let other = &corpus[rng.random_range(0..corpus.len())];
            let from = rng.random_range(0..=other.len());
            let piece = &other[from..(from + length(rng)).min(other.len())];
            drop(input.splice(at..at, piece.iter().copied()));
        }
        // A word of the format, or a number at an edge, in place of what stands there or before it.
        5 | 6 => {
            let word = match rng.random_range(0..words.len() + EDGES.len()) {
                i if i < words.len() => words[i],
                i => EDGES[i - words.len()],
            };
            let end = (at + if rng.random() { word.len() } else { 0 }).min(n);
            drop(input.splice(at..end, word.bytes()));
        }
        // A binary number at an edge.
        7 if n - at >= 8 => {
            let number: u64 = [0, u64::MAX, u64::MAX / 2, 1 << 32, rng.random()][rng.random_range(0..5)];
            let bytes = 1 << rng.random_range(0..4);
            input[at..at + bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
        }
        _ => input.truncate(at),
    }
}

/// Mostly short.
fn length<R: Rng + ?Sized>(rng: &mut R) -> usize {
    let bits = rng.random_range(1..9);
    rng.random_range(0..1 << bits)
}
