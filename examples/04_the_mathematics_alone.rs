//! `rl-core` alone: advantages, KL and the optimal RLHF policy of a world with four answers.

use burn::tensor::{Device, Tensor};
use rl_core::dist::{Categorical, Distribution};
use rl_core::returns::{End, gae};
use rl_core::tilt::{kl, tilt};

fn main() {
    // A time limit is not an end of the world. Both episodes earn 1 per step for three steps; one died,
    // the other was cut, and its critic says 2 were still to come.
    let (rewards, values, gamma) = ([1.0, 1.0, 1.0], [0.5, 0.5, 0.5], 0.9);
    for (name, last) in [("terminated", End::Terminated), ("truncated", End::Truncated { bootstrap: 2.0 })] {
        let ends = [End::Continues, End::Continues, last];
        println!("{name:>10}: advantages {:?}", gae(&rewards, &values, &ends, 0.0, gamma, 1.0).advantages);
    }

    // KL has a direction, and the names say which.
    let device = Device::flex();
    let law = |logits: [f32; 4]| Categorical::new(Tensor::<1>::from_floats(logits, &device).unsqueeze());
    let (p, q) = (law([0.0, 0.0, 0.0, 0.0]), law([3.0, 0.0, 0.0, 0.0]));
    let nats = |t: Tensor<1>| t.into_scalar::<f32>();
    println!("KL(p ‖ q) = {:.4}, KL(q ‖ p) = {:.4} nats", nats(p.kl(&q)), nats(q.kl(&p)));

    // RLHF in closed form: π* ∝ π_ref·exp(r/β). Smaller β follows the reward further from the reference.
    let (reference, rewards) = ([0.4, 0.3, 0.2, 0.1], [0.0, 0.0, 0.5, 2.0]);
    for beta in [10.0, 1.0, 0.2] {
        let best = tilt(&reference, &rewards, beta);
        println!(
            "β = {beta:>4}: π* = {:.3?}, reward {:.3}, KL(π* ‖ π_ref) = {:.3} nats",
            best.policy, best.expected_reward, best.kl
        );
        // Its objective E[r] − β·KL is β·log Z, and nothing lies above it.
        let objective = best.expected_reward - beta * kl(&best.policy, &reference);
        assert!((objective - beta * best.log_z).abs() < 1e-9);
    }
}

#[test]
fn the_page_runs() {
    main();
}
