//! Choices of a run that differ from the default.

/// Differences from a run of first alternatives: the place of each choice and the alternative
/// taken there.
#[derive(Debug, Default, Clone)]
pub(super) struct Plan(Vec<(usize, usize)>);

impl Plan {
    pub(super) fn alternative_at(&self, place: usize) -> usize {
        self.0.iter().find(|(at, _)| *at == place).map_or(0, |(_, alternative)| *alternative)
    }

    /// Returns every plan with one more difference, behind those of this one; choices that shape
    /// the value come before those that only change a scalar.
    pub(super) fn variations<'a>(
        &'a self,
        choices: &'a [Choice],
    ) -> impl Iterator<Item = Self> + 'a {
        let first = self.0.last().map_or(0, |(at, _)| at + 1);
        [false, true].into_iter().flat_map(move |of_scalar| {
            let places = first..choices.len();
            places.filter(move |place| choices[*place].of_scalar == of_scalar).flat_map(
                move |place| {
                    (1..choices[place].alternatives).map(move |alternative| {
                        Self([self.0.as_slice(), &[(place, alternative)]].concat())
                    })
                },
            )
        })
    }
}

/// A choice that a run came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) alternatives: usize,
    /// True if it only decides between scalars of one type.
    pub(super) of_scalar: bool,
}
