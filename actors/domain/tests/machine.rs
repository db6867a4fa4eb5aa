//! Tests of the machine: commands, and the facts that they lead to. One file for each group of
//! rules; `properties` sends random commands.
//!
//! After each batch, [`machine::world::World`] checks the invariants.

#[cfg(test)]
mod machine {
    mod build;
    mod calls;
    mod invariants;
    mod law;
    mod picture;
    mod places;
    mod shapes;
    mod world;

    mod agent;
    mod all;
    mod asking;
    mod branch;
    mod cancel;
    mod child;
    mod compensable;
    mod compensated;
    mod compensation;
    mod costly;
    mod crash;
    mod depth;
    mod ending;
    mod failure;
    mod for_each;
    mod happenings;
    mod hold;
    mod limits;
    mod loops;
    mod properties;
    mod race;
    mod races;
    mod raised;
    mod replay;
    mod resume;
    mod retry;
    mod reversal;
    mod rules;
    mod sequence;
    mod skipped;
    mod sleep;
    mod status;
    mod suspend;
    mod suspension;
    mod tap;
    mod when;
    mod why;
}
