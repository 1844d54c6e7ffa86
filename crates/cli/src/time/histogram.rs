//! A histogram of one line, in Unicode blocks.

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of a histogram.
pub const WIDTH: usize = 40;

/// Draws how often `values` fall into each of [`WIDTH`] equal parts of `low..=high`; higher values are in the last one. A single value
/// already shows as the lowest block.
pub fn line(values: &[f64], low: f64, high: f64) -> String {
    let mut counts = [0usize; WIDTH];
    let width = (high - low).max(f64::MIN_POSITIVE) / WIDTH as f64;
    for value in values {
        counts[(((value - low) / width).max(0.0) as usize).min(WIDTH - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    counts.iter().map(|count| BLOCKS[(count * (BLOCKS.len() - 1)).div_ceil(most)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_part_is_a_full_block_and_a_single_value_is_seen() {
        let mut values = vec![1.0; 100];
        values.push(2.0);
        let line: Vec<char> = line(&values, 1.0, 2.0).chars().collect();
        assert_eq!((line[0], line[1], line[WIDTH - 1]), ('█', ' ', '▁'));
    }

    #[test]
    fn equal_values_and_outliers_have_a_place() {
        assert!(line(&[5.0, 5.0], 5.0, 5.0).contains('█'));
        assert_eq!(line(&[1.0, 99.0], 1.0, 2.0).chars().last(), Some('█'));
    }
}
