//! Statistics of rates: quantiles of the normal distribution, sample sizes, and Wilson intervals.

/// Returns a number z. The absolute value of a standard normal variable exceeds z with probability 1 - `confidence`.
/// For a confidence of 0.95, z is 1.96.
///
/// The function computes the integral as a series, and finds the result by bisection. If `confidence` is between 0 and
/// 1, the result is exact to 1e-9.
pub fn quantile(confidence: f64) -> f64 {
    let (mut low, mut high) = (0., 8.);
    for _ in 0..60 {
        let middle = (low + high) / 2.;
        if within(middle) < confidence { low = middle } else { high = middle }
    }
    (low + high) / 2.
}

/// Returns the probability that a standard normal variable is within `z` of 0.
fn within(z: f64) -> f64 {
    // phi(z) * 2 * (z + z^3/3 + z^5/(3*5) + ...)
    let (mut term, mut sum) = (z, z);
    for n in 1..200 {
        term *= z * z / f64::from(2 * n + 1);
        sum += term;
    }
    2. * sum * (-z * z / 2.).exp() / (2. * std::f64::consts::PI).sqrt()
}

/// Returns the number of experiments that a campaign needs. With this number, the measured rate of an outcome is within
/// `margin` of the true rate with probability `confidence`. The result is large enough for any rate. A rate of one half
/// requires the most experiments. The formula assumes an infinite population of faults. (Leveugle et al., DATE 2009)
pub fn sample_size(confidence: f64, margin: f64) -> u64 {
    let z = quantile(confidence);
    (z * z * 0.25 / (margin * margin)).ceil() as u64
}

/// Returns the confidence interval of the rate of an outcome. `hits` of the `of` experiments have this outcome. (Wilson
/// 1927)
pub fn wilson(hits: u64, of: u64, confidence: f64) -> [f64; 2] {
    if of == 0 {
        return [0., 1.];
    }
    let (n, z) = (of as f64, quantile(confidence));
    let rate = hits as f64 / n;
    let centre = rate + z * z / (2. * n);
    let half = z * (rate * (1. - rate) / n + z * z / (4. * n * n)).sqrt();
    let scale = 1. + z * z / n;
    [((centre - half) / scale).max(0.), ((centre + half) / scale).min(1.)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (confidence, z) in
            [(0.5, 0.674_489_75), (0.9, 1.644_853_63), (0.95, 1.959_963_98), (0.99, 2.575_829_3)]
        {
            assert!((quantile(confidence) - z).abs() < 1e-7, "{confidence}");
        }
    }

    /// NVBitFI states 384 experiments for a margin of 5 %, and 1,000 experiments for a margin of 3.1 %. `sample_size`
    /// rounds fractions up.
    #[test]
    fn sample_sizes_are_those_that_other_tools_state() {
        assert_eq!((sample_size(0.95, 0.05), sample_size(0.95, 0.031)), (385, 1000));
    }

    #[test]
    fn wilson_intervals_are_those_of_the_textbook() {
        let [low, high] = wilson(10, 100, 0.95);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        let [low, high] = wilson(0, 10, 0.95);
        assert!(low == 0. && (high - 0.2775).abs() < 1e-4, "{high}");
        assert_eq!(wilson(0, 0, 0.95), [0., 1.]);
    }
}
