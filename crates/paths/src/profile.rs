//! tmp
use crate::estimate::{expand::expand, likelihood::candidates, observation::Observations};
use crate::fragments::Fragments;
use crate::path::Path;
use crate::program_graph::ProgramGraph;
use std::collections::BTreeMap;

/// m
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// e
    Expand,
    /// l
    Likelihood(usize),
}

/// p
#[derive(Debug)]
pub struct PathProfile {
    /// c
    pub counts: BTreeMap<Path, f64>,
}

impl PathProfile {
    /// n
    pub fn new(program: &ProgramGraph, fragments: &Fragments, method: Method) -> Self {
        let observations = Observations::new(program, fragments);
        let counts = match method {
            Method::Expand => expand(&observations).0,
            Method::Likelihood(steps) => {
                let weights = observations.sampled_weights();
                let mut counts = BTreeMap::new();
                for candidates in candidates(&observations, &weights) {
                    let c = candidates.steps(&weights, &candidates.prior, steps);
                    for (marks, count) in candidates.marks.iter().zip(c) {
                        counts.insert(
                            Path { function: candidates.function, marks: marks.clone() },
                            count,
                        );
                    }
                }
                counts
            }
        };
        Self { counts }
    }
}
