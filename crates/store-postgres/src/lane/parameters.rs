//! Parameters of the statements of lanes: one array per column.

use tokio_postgres::types::ToSql;

use super::session::Fence;

/// Values of the parameters of a statement, in order.
#[derive(Default)]
pub(crate) struct Parameters<'b>(Vec<Box<dyn ToSql + Send + Sync + 'b>>);

impl<'b> Parameters<'b> {
    /// Returns the parameters of a fence: the number of the batch, the node, the lane, and the
    /// session.
    pub(crate) fn of(fence: Fence) -> Self {
        let Fence { node, lane, session, batch } = fence;
        let mut parameters = Self::default();
        parameters.add(batch);
        parameters.add(node);
        parameters.add(lane);
        parameters.add(session);
        parameters
    }

    /// Returns the values as the client takes them.
    pub(crate) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.0.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }

    /// Adds one value.
    pub(crate) fn add(&mut self, value: impl ToSql + Send + Sync + 'b) {
        self.0.push(Box::new(value));
    }

    /// Adds a value of each row, as an array.
    pub(crate) fn column<R, T: ToSql + Send + Sync + 'b>(
        &mut self,
        rows: &[R],
        value: impl Fn(&R) -> T,
    ) {
        self.add(rows.iter().map(value).collect::<Vec<_>>());
    }
}

/// Converts a code or a slot. None is large.
pub(crate) fn code(code: i64) -> i16 {
    i16::try_from(code).unwrap_or(i16::MAX)
}
