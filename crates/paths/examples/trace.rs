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
    let uni = std::env::var("UNIFORM").is_ok();
    let period = if uni { period / 8 } else { period };
    let runs: u64 = args[4].parse().unwrap();
    let groups: u64 = args[5].parse().unwrap();
    let mut recs: Vec<Vec<BranchRecord>> = (0..groups)
        .map(|g| {
            (0..runs)
                .map(|s| BranchRecord::new(32, period, period / 10, g * 1000 + s * 7 + 1))
                .collect()
        })
        .collect();
    each(&mut |i, b| {
        counter.take(b);
        for r in recs.iter_mut().flatten() {
            r.take(if uni { 1 } else { i }, b)
        }
    });
    let (truth, cut, breaks) = counter.finish();
    let total: u64 = truth.iter().map(|x| x.1).sum();
    let truth: BTreeMap<Path, f64> = truth.into_iter().map(|(p, c)| (p, c as f64)).collect();
    let hot: Vec<_> = truth.iter().filter(|c| *c.1 >= HOT * total as f64).collect();
    let hotflow: f64 = hot.iter().map(|x| x.1).sum::<f64>() / total as f64;
    println!(
        "{} branches {n} instr {ins} functions {} paths {} instances {total} cut {cut} breaks {breaks} hot {} ({:.3})",
        args[1],
        graph.len(),
        truth.len(),
        hot.len(),
        hotflow
    );
    let frs: Vec<Fragments> = recs
        .into_iter()
        .map(|recs| {
            let mut f = Fragments::default();
            for r in recs {
                f.merge(&r.finish())
            }
            f
        })
        .collect();
    for depth in [4, 8, 16, 32] {
        let (mut e, mut l, mut cov, mut nz, mut below, mut above) = (0.0, 0.0, 0, 0, 0, 0);
        let mut t = std::time::Instant::now();
        let mut zs: BTreeMap<&Path, Vec<(f64, f64)>> = BTreeMap::new();
        let mut bias: BTreeMap<&Path, (f64, u32)> = BTreeMap::new();
        for f in &frs {
            let f = f.newest(depth);
            e += weight_matching(
                &truth,
                &PathProfile::new(&graph, &f, SampledBy::Instructions, PathMethod::Expand).shares(),
                HOT,
            )
            .unwrap_or(0.0);
            t = std::time::Instant::now();
            let p = PathProfile::with_intervals(
                &graph,
                &f,
                SampledBy::Instructions,
                0.9,
                &mut pinwise_topology::Random::new(5),
            );
            l += weight_matching(&truth, &p.shares(), HOT).unwrap_or(0.0);
            let iv: BTreeMap<&Path, (f64, f64)> =
                p.paths.iter().map(|x| (&x.path, x.interval.unwrap())).collect();
            let sh = p.shares();
            for (h, c) in &hot {
                let (lo, hi) = iv.get(h).copied().unwrap_or_default();
                let s = *c / total as f64;
                nz += 1;
                zs.entry(h).or_default().push((
                    sh.get(h).copied().unwrap_or(0.0) / s,
                    ((hi - lo) / 3.29 / s).max(0.01),
                ));
                let b = bias.entry(h).or_default();
                b.0 += sh.get(h).copied().unwrap_or(0.0) / s / frs.len() as f64;
                if s < lo {
                    below += 1;
                    b.1 += 1
                } else if s > hi {
                    above += 1;
                    b.1 += 1
                } else {
                    cov += 1
                }
            }
        }
        let g = frs.len() as f64;
        let always = bias.values().filter(|b| b.1 as f64 > 0.7 * g).count();
        let (mut rb, mut rs) = (0.0, 0.0);
        for v in zs.values() {
            let n = v.len() as f64;
            let m = v.iter().map(|x| x.0).sum::<f64>() / n;
            let sg = v.iter().map(|x| x.1).sum::<f64>() / n;
            let var = v.iter().map(|x| (x.0 - m).powi(2)).sum::<f64>() / (n - 1.0);
            rs += (var / sg / sg).min(9.0);
            rb += ((m - 1.0).powi(2) / sg / sg - var / sg / sg / n).min(9.0);
        }
        print!(
            "    z: bias {:.2} sd {:.2} ",
            (rb / zs.len() as f64).max(0.0).sqrt(),
            (rs / zs.len() as f64).sqrt()
        );
        if std::env::var("SHOW").is_ok() {
            let mut v: Vec<_> = bias.iter().filter(|b| b.1.1 as f64 > 0.7 * g).collect();
            v.sort_by(|a, b| truth[*b.0].total_cmp(&truth[*a.0]));
            for (p, b) in v.iter().take(12) {
                let gr = graph.graph(p.function);
                println!(
                    "    {:.3} share {:.4} f{} {:x} blocks {:?} {:?} calls {}",
                    b.0,
                    truth[**p] / total as f64,
                    p.function,
                    gr.blocks[p.blocks()[0] as usize].start,
                    p.blocks(),
                    p.end(),
                    p.blocks().iter().map(|x| gr.blocks[*x as usize].calls.len()).sum::<usize>()
                );
            }
        }
        println!(
            "  depth {depth:2} samples {} | expand {:.1} | likelihood {:.1} | coverage {:.1} (truth below {:.1} above {:.1}) nearly never {} of {} | {:.1}s",
            frs[0].total(),
            100.0 * e / g,
            100.0 * l / g,
            100.0 * cov as f64 / nz as f64,
            100.0 * below as f64 / nz as f64,
            100.0 * above as f64 / nz as f64,
            always,
            hot.len(),
            t.elapsed().as_secs_f64()
        );
    }
}
