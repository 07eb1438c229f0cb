//! Writes the text format of Prometheus, version 0.0.4.

use std::fmt::{Display, Write as _};

use super::histogram::Histogram;

/// Labels of a series, already in the text format: `method="ping",transport="tcp"`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels(String);

/// What the values of a metric mean.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// Metrics as text.
#[derive(Debug, Default)]
pub(crate) struct MetricsText(String);

impl Labels {
    /// Adds a label. Control characters other than line feeds need no escaping.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(name);
        self.0.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                other => self.0.push(other),
            }
        }
        self.0.push('"');
        self
    }

    /// Adds a label, unless it has no value.
    pub(crate) fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }
}

impl MetricsText {
    /// Begins a metric, whose help must contain neither backslashes nor line feeds.
    pub(crate) fn metric(&mut self, name: &str, kind: MetricKind, help: &str) {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// Adds the value of a series.
    pub(crate) fn value(&mut self, name: &str, labels: &Labels, value: impl Display) {
        match labels.0.is_empty() {
            true => self.line(format_args!("{name} {value}")),
            false => self.line(format_args!("{name}{{{}}} {value}", labels.0)),
        }
    }

    /// Adds the buckets, the sum and the count of a series.
    pub(crate) fn histogram(&mut self, name: &str, labels: &Labels, histogram: &Histogram) {
        let end = [("+Inf", histogram.count())];
        for (bound, count) in histogram.cumulative().chain(end) {
            let labels = labels.clone().with("le", bound);
            self.line(format_args!("{name}_bucket{{{}}} {count}", labels.0));
        }
        let sum = histogram.sum().as_secs_f64();
        self.value(&format!("{name}_sum"), labels, sum);
        self.value(&format!("{name}_count"), labels, histogram.count());
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_labels() {
        let labels = Labels::default().with("a", "\"b\\\nc").with("d", "ä");
        let mut text = MetricsText::default();
        text.value("m", &labels, 1.5);
        assert_eq!(text.into_string(), "m{a=\"\\\"b\\\\\\nc\",d=\"ä\"} 1.5\n");
    }
}
