//! Short stories from a grammar of our own: a corpus without a download, whose true reward is known.
//!
//! A story has two characters, a thing, a mood that decides what happens to them, and an end. Names, pronouns and things
//! stay the same throughout, so a model that has learnt to read can be told from one that has learnt letters.
//!
//! ```text
//! Mia the fox lived in the forest. One day she found a red ball. Tom the bear came by and wanted to play.
//! Mia shared the ball with Tom. They laughed and Mia was happy. It was a wonderful day.
//! ```

mod sentiment;

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

pub use sentiment::{VALENCE, sentiment};

/// A story in two parts: what is given, and what is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// The first sentence.
    pub opening: String,
    /// The others; begins with a space.
    pub rest: String,
}

impl Story {
    /// The whole story.
    pub fn text(&self) -> String {
        format!("{}{}", self.opening, self.rest)
    }
}

/// How a story goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Good,
    Bad,
    /// Badly at first, then well.
    Turns,
}

/// A name, what kind of being it is, and how it is spoken of.
struct Character {
    name: &'static str,
    kind: &'static str,
    she: &'static str,
    her: &'static str,
}

const fn female(name: &'static str, kind: &'static str) -> Character {
    Character { name, kind, she: "she", her: "her" }
}

const fn male(name: &'static str, kind: &'static str) -> Character {
    Character { name, kind, she: "he", her: "his" }
}

const CHARACTERS: [Character; 12] = [
    female("Mia", "fox"),
    male("Tom", "bear"),
    female("Lily", "rabbit"),
    male("Ben", "dog"),
    female("Anna", "girl"),
    male("Max", "boy"),
    female("Rosa", "cat"),
    male("Otto", "owl"),
    female("Nora", "mouse"),
    male("Finn", "frog"),
    female("Ida", "hen"),
    male("Paul", "goat"),
];

const PLACES: [&str; 8] = [
    "in the forest",
    "in a small house",
    "near the village",
    "behind the old garden",
    "on a green hill",
    "by the river",
    "under a tall tree",
    "at the edge of the lake",
];

const DAYS: [&str; 6] =
    ["One day", "One morning", "After lunch", "In the evening", "On a rainy day", "On a warm day"];

const COLOURS: [&str; 8] = ["red", "blue", "yellow", "little", "big", "old", "shiny", "wooden"];

const THINGS: [&str; 10] = ["ball", "kite", "key", "map", "boat", "blanket", "hat", "drum", "spoon", "star"];

/// One story.
pub fn story<R: Rng + ?Sized>(rng: &mut R) -> Story {
    let pick = |from: &[&'static str], rng: &mut R| *from.choose(rng).expect("no list is empty");
    let hero = CHARACTERS.choose(rng).expect("there are characters");
    let friend = loop {
        let other = CHARACTERS.choose(rng).expect("there are characters");
        if other.name != hero.name {
            break other;
        }
    };
    let mood = *[Mood::Good, Mood::Bad, Mood::Turns].choose(rng).expect("there are moods");
    let place = pick(&PLACES, rng);
    let opening = match rng.random_range(0..2) {
        0 => format!("{} the {} lived {place}.", hero.name, hero.kind),
        _ => format!("Once a {} called {} lived {place}.", hero.kind, hero.name),
    };
    let plot =
        Plot { hero, friend, day: pick(&DAYS, rng), colour: pick(&COLOURS, rng), thing: pick(&THINGS, rng) };
    let mut rest = plot.beginning(mood, rng);
    rest += &plot.middle(mood, rng);
    rest += &plot.end(mood, rng);
    Story { opening, rest }
}

/// What a story is about.
struct Plot<'a> {
    hero: &'a Character,
    friend: &'a Character,
    day: &'static str,
    colour: &'static str,
    thing: &'static str,
}

impl Plot<'_> {
    /// One of several sentences, with a space before it.
    fn say<R: Rng + ?Sized>(&self, sentences: &[&str], rng: &mut R) -> String {
        let sentence = sentences.choose(rng).expect("no list is empty");
        let Self { hero, friend, day, colour, thing } = self;
        let filled = sentence
            .replace("{hero}", hero.name)
            .replace("{she}", hero.she)
            .replace("{her}", hero.her)
            .replace("{friend}", friend.name)
            .replace("{kind}", friend.kind)
            .replace("{day}", day)
            .replace("{colour}", colour)
            .replace("{thing}", thing);
        format!(" {filled}")
    }

    fn beginning<R: Rng + ?Sized>(&self, mood: Mood, rng: &mut R) -> String {
        let first = match mood {
            Mood::Good => self.say(
                &["{day} {she} found a {colour} {thing}.", "{day} {she} got a {colour} {thing} as a gift."],
                rng,
            ),
            Mood::Bad | Mood::Turns => self.say(
                &["{day} {she} lost {her} {colour} {thing}.", "{day} {she} broke {her} {colour} {thing}."],
                rng,
            ),
        };
        let meet = self.say(
            &[
                "{friend} the {kind} came by and wanted to play.",
                "Then {she} met {friend} the {kind}.",
                "{friend} the {kind} looked at the {thing} and asked about it.",
            ],
            rng,
        );
        first + &meet
    }

    fn middle<R: Rng + ?Sized>(&self, mood: Mood, rng: &mut R) -> String {
        match mood {
            Mood::Good => self.say(
                &[
                    "{hero} shared the {thing} with {friend}.",
                    "{friend} thanked {hero} and gave {hero} a hug.",
                    "They took the {thing} and played all day.",
                ],
                rng,
            ),
            Mood::Bad => self.say(
                &[
                    "{friend} was angry and shouted at {hero}.",
                    "{friend} did not want to help.",
                    "They had a fight about the {thing}.",
                ],
                rng,
            ),
            Mood::Turns => self.say(
                &[
                    "{friend} helped {hero} and the {thing} was fine again.",
                    "{friend} was kind and gave {hero} a new {thing}.",
                    "{friend} smiled and said that it was not bad.",
                ],
                rng,
            ),
        }
    }

    fn end<R: Rng + ?Sized>(&self, mood: Mood, rng: &mut R) -> String {
        match mood {
            Mood::Good | Mood::Turns => {
                self.say(
                    &[
                        "They laughed and {hero} was happy.",
                        "{hero} smiled and felt proud.",
                        "Now {hero} and {friend} are good friends.",
                    ],
                    rng,
                ) + &self.say(
                    &["It was a wonderful day.", "They danced and went home.", "Everyone was glad."],
                    rng,
                )
            }
            Mood::Bad => {
                self.say(
                    &[
                        "{hero} cried and was sad.",
                        "{hero} felt alone and afraid.",
                        "{hero} was hurt and went away.",
                    ],
                    rng,
                ) + &self
                    .say(&["It was a terrible day.", "They never played again.", "Everyone was tired."], rng)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn stories(n: usize) -> Vec<Story> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        (0..n).map(|_| story(&mut rng)).collect()
    }

    #[test]
    fn a_seed_gives_the_same_stories_and_every_blank_is_filled() {
        assert_eq!(stories(50), stories(50));
        for story in stories(500) {
            let text = story.text();
            assert!(!text.contains(['{', '}']) && !text.contains("  ") && text.ends_with('.'), "{text}");
            assert_eq!(text.matches('.').count(), 6, "{text}");
        }
    }

    #[test]
    fn moods_are_heard_in_the_sentiment() {
        let scores: Vec<f64> = stories(600).iter().map(|story| sentiment(&story.text())).collect();
        let share = |wanted: fn(&f64) -> bool| scores.iter().filter(|s| wanted(s)).count() as f64 / 600.0;
        assert!(share(|s| *s > 0.05) > 0.4 && share(|s| *s < -0.05) > 0.25, "{scores:?}");
        assert!(scores.iter().all(|s| (-1.0..=1.0).contains(s)));
    }

    #[test]
    fn there_are_more_stories_than_a_model_can_learn_by_heart() {
        let mut texts: Vec<String> = stories(2000).iter().map(Story::text).collect();
        texts.sort();
        texts.dedup();
        assert!(texts.len() > 1990, "{}", texts.len());
    }
}
