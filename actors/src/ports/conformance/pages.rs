//! Reads paged lists to their end.

/// Upper bound on pages, far above the longest list of the suite.
const PAGES_MAX: usize = 2_000;

/// Reads all pages of a list. `page` gets the cursor of the previous page and returns the next one.
pub(super) async fn every<T, C>(
    list: &str,
    mut page: impl AsyncFnMut(Option<C>) -> (Vec<T>, Option<C>),
) -> Vec<Vec<T>> {
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        assert!(
            pages.len() < PAGES_MAX,
            "the pages of {list} never end: a page must continue after the cursor that it gets"
        );
        let (found, next) = page(after).await;
        pages.push(found);
        match next {
            Some(cursor) => after = Some(cursor),
            None => return pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(numbers: &[u32], after: Option<u32>) -> (Vec<u32>, Option<u32>) {
        let mut left = numbers.iter().copied().filter(|n| after.is_none_or(|after| *n > after));
        let page: Vec<_> = left.by_ref().take(2).collect();
        let next = left.next().and_then(|_| page.last().copied());
        (page, next)
    }

    #[tokio::test]
    async fn a_list_is_read_to_its_end() {
        let pages = every("numbers", async |after| page_of(&[1, 2, 3, 4, 5], after)).await;
        assert_eq!(pages, [vec![1, 2], vec![3, 4], vec![5]]);
    }

    #[tokio::test]
    #[should_panic(expected = "the pages of numbers never end")]
    async fn a_list_that_ignores_its_cursor_ends_the_suite() {
        every("numbers", async |_: Option<u32>| page_of(&[1, 2, 3], None)).await;
    }
}
