use pinwise_paths::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Read;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&args[1]).unwrap();
    let binary = Binary::parse(&bytes).unwrap();
    let period: u64 = args[3].parse().unwrap();
    let mut file = std::fs::File::open(&args[2]).unwrap();
    let mut head = [0u8; 16];
    file.read_exact(&mut head).unwrap();
    let bias = u64::from_le_bytes(head[..8].try_into().unwrap()).wrapping_sub(binary.lowest());
    let each = |f: &mut dyn FnMut(u64, Branch)| {
        let mut file =
            std::io::BufReader::with_capacity(1 << 20, std::fs::File::open(&args[2]).unwrap());
        let mut r = [0u8; 16];
        file.read_exact(&mut r).unwrap();
        while file.read_exact(&mut r).is_ok() {
            let a = u64::from_le_bytes(r[..8].try_into().unwrap());
            let b = u64::from_le_bytes(r[8..].try_into().unwrap());
            f(
                a >> 48,
                Branch { from: (a & ((1 << 48) - 1)).wrapping_sub(bias), to: b.wrapping_sub(bias) },
            );
        }
    };
    let mut seen = HashSet::new();
    let (mut n, mut ins) = (0u64, 0u64);
    each(&mut |i, b| {
        seen.insert(b);
        n += 1;
        ins += i;
    });
    let seen: BTreeSet<Branch> = seen.into_iter().collect();
    let graph = ProgramGraph::new(&binary, seen.iter().copied());
    let mut counter = PathCounter::new(&graph);
    let runs: u64 = args[4].parse().unwrap();
    let depths = [4, 8, 16, 32];
    let mut recs: Vec<Vec<BranchRecord>> = depths
        .iter()
        .map(|&d| (0..runs).map(|s| BranchRecord::new(d, period, period / 10, s * 7 + 1)).collect())
        .collect();
    each(&mut |i, b| {
        counter.take(b);
        for r in recs.iter_mut().flatten() {
            r.take(i, b)
        }
    });
    let (truth, cut, breaks) = counter.finish();
    let total: u64 = truth.iter().map(|x| x.1).sum();
    let truth: BTreeMap<Path, f64> = truth.into_iter().map(|(p, c)| (p, c as f64)).collect();
    let hot = truth.values().filter(|c| **c >= HOT * total as f64).count();
    let hotflow: f64 =
        truth.values().filter(|c| **c >= HOT * total as f64).sum::<f64>() / total as f64;
    println!(
        "{} branches {n} instr {ins} functions {} paths {} instances {total} cut {cut} breaks {breaks} hot {hot} ({:.3})",
        args[1],
        graph.len(),
        truth.len(),
        hotflow
    );
    for (depth, recs) in depths.iter().zip(recs) {
        let mut f = Fragments::default();
        for r in recs {
            f.merge(&r.finish())
        }
        let mut line = format!("  depth {depth:2} samples {} distinct {}", f.total(), f.distinct());
        for (name, m) in [
            ("expand", Method::Expand),
            ("chain", Method::Likelihood(0)),
            ("em3", Method::Likelihood(3)),
            ("em10", Method::Likelihood(10)),
            ("em50", Method::Likelihood(50)),
        ] {
            let t = std::time::Instant::now();
            let p = PathProfile::new(&graph, &f, m);
            line += &format!(
                " | {name} {:.1} ({:.1}s)",
                100.0 * weight_matching(&truth, &p.counts, HOT).unwrap_or(0.0),
                t.elapsed().as_secs_f64()
            );
        }
        println!("{line}");
    }
}
