//! Statistics of a list of times.

/// How often the pairs are drawn for the interval of a ratio.
const DRAWS: usize = 4000;

/// A list of times in numbers (in the unit of the list).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub min: f64,
    /// Median absolute deviation from the median: a spread that a few slow runs do not change.
    pub mad: f64,
    pub p95: f64,
    pub max: f64,
}

impl Summary {
    /// Sums up at least one value.
    pub fn from_values(values: &[f64]) -> Self {
        let sorted = sorted(values);
        let median = quantile(&sorted, 0.5);
        let deviations: Vec<f64> = sorted.iter().map(|value| (value - median).abs()).collect();
        Summary {
            median,
            min: sorted[0],
            mad: quantile(&self::sorted(&deviations), 0.5),
            p95: quantile(&sorted, 0.95),
            max: sorted[sorted.len() - 1],
        }
    }
}

/// A ratio of medians, and the interval in which it lies in 95 of 100 repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    /// Median of `first` by median of `second`, which were measured in turns. Bootstrapping, with the same draws every time, gives the
    /// interval.
    pub fn of_medians(first: &[f64], second: &[f64]) -> Self {
        let pairs = first.len().min(second.len());
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut ratios: Vec<f64> = (0..DRAWS)
            .map(|_| {
                let drawn: Vec<usize> = (0..pairs).map(|_| random.below(pairs)).collect();
                median_of(first, &drawn) / median_of(second, &drawn)
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let value = quantile(&sorted(first), 0.5) / quantile(&sorted(second), 0.5);
        Ratio { value, low: quantile(&ratios, 0.025), high: quantile(&ratios, 0.975) }
    }
}

fn median_of(values: &[f64], drawn: &[usize]) -> f64 {
    quantile(&sorted(&drawn.iter().map(|&index| values[index]).collect::<Vec<_>>()), 0.5)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The value below which a share of the sorted values lies, interpolated between neighbours.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (position.floor() as usize, position.ceil() as usize);
    sorted[below] + (sorted[above] - sorted[below]) * (position - position.floor())
}

/// Marsaglia's xorshift64: good enough to draw samples, and the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_run_does_not_move_median_and_spread() {
        let summary = Summary::from_values(&[3.0, 1.0, 2.0, 4.0, 1000.0]);
        assert_eq!((summary.median, summary.min, summary.mad, summary.max), (3.0, 1.0, 1.0, 1000.0));
        assert_eq!(Summary::from_values(&[7.0]), Summary { median: 7.0, min: 7.0, mad: 0.0, p95: 7.0, max: 7.0 });
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.5), 2.5);
        assert_eq!(quantile(&[1.0, 2.0], 1.0), 2.0);
    }

    #[test]
    fn the_interval_holds_the_ratio_and_is_narrow_for_steady_times() {
        let fast: Vec<f64> = (0..20).map(|index| 1.0 + f64::from(index % 5) / 100.0).collect();
        let slow: Vec<f64> = (0..20).map(|index| 10.0 + f64::from(index % 7) / 10.0).collect();
        let ratio = Ratio::of_medians(&fast, &slow);
        assert!(ratio.low <= ratio.value && ratio.value <= ratio.high, "{ratio:?}");
        assert!(ratio.high - ratio.low < 0.01 && (ratio.value - 0.1).abs() < 0.01, "{ratio:?}");
        assert_eq!(ratio, Ratio::of_medians(&fast, &slow));
    }
}
