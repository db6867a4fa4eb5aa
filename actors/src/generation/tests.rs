//! Generations with scripted models over a store in memory.

mod old;
