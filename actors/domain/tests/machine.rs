//! The rules of execution, told as stories: what is asked of the machine, and every fact that
//! follows. One file per group of rules; `properties` asks at random.
//!
//! Whatever a story does, [`machine::world::World`] checks after each batch what must hold always.

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
    mod branch;
    mod cancel;
    mod child;
    mod costly;
    mod crash;
    mod depth;
    mod ending;
    mod failure;
    mod for_each;
    mod hold;
    mod limits;
    mod loops;
    mod properties;
    mod race;
    mod races;
    mod replay;
    mod resume;
    mod retry;
    mod rules;
    mod sequence;
    mod sleep;
    mod status;
    mod suspend;
    mod suspension;
    mod tap;
    mod when;
    mod why;
}
