//! The fits that S. Coles published (*An Introduction to Statistical Modeling of Extreme Values*,
//! 2001, section 4.4), to the printed digits. The data are read from the shared folder; without it
//! the tests say so and return.

use pinwise_evt::fit;

/// The second column of a data set, or `None` if the shared data are absent.
fn column(file: &str) -> Option<Vec<f64>> {
    let path = pinwise_synthetic::shared_data(&format!("evt/{file}"))?;
    let text = std::fs::read_to_string(path).unwrap();
    let second = |line: &str| line.split(',').nth(1).unwrap().trim().parse().unwrap();
    Some(text.lines().skip(1).map(second).collect())
}

fn above(values: &[f64], threshold: f64) -> Vec<f64> {
    values.iter().filter(|&&x| x > threshold).map(|x| x - threshold).collect()
}

/// Whether `value`, rounded to as many decimals, is what was printed.
fn prints(value: f64, printed: &str) -> bool {
    let decimals = printed.split_once('.').map_or(0, |(_, d)| d.len());
    format!("{value:.decimals$}") == printed
}

#[test]
fn the_daily_rainfall_fit_is_the_published_one() {
    let Some(rain) = column("rain.csv") else { return };
    let found = fit(&above(&rain, 30.0)).unwrap();
    assert_eq!(found.exceedances, 152);
    assert!(prints(found.gpd.scale(), "7.44") && prints(found.gpd.shape(), "0.184"), "{found:?}");
    assert!(prints(found.log_likelihood, "-485.1"), "{found:?}");
    let [[a, b], [c, d]] = found.covariance.unwrap();
    assert!(
        prints(a, "0.9188") && prints(b, "-0.0655") && prints(c, "-0.0655") && prints(d, "0.0102"),
        "{found:?}"
    );
}

#[test]
fn the_dow_jones_fit_is_the_published_one() {
    let Some(index) = column("dowjones.csv") else { return };
    let changes: Vec<f64> = index.windows(2).map(|w| 100.0 * (w[1] / w[0]).ln()).collect();
    let found = fit(&above(&changes, 2.0)).unwrap();
    assert_eq!(found.exceedances, 37);
    assert!(prints(found.gpd.scale(), "0.495") && prints(found.gpd.shape(), "0.288"), "{found:?}");
    // The published standard errors are the roots of the variances.
    let [[scale, _], [_, shape]] = found.covariance.unwrap();
    assert!(prints(scale.sqrt(), "0.150") && prints(shape.sqrt(), "0.258"), "{found:?}");
}
