/** Moves the focus to the first field of a form with a fault, once the faults are drawn: it may be out of view. */
export function focusFault(form: HTMLElement | null): void {
  requestAnimationFrame(() => form?.querySelector<HTMLElement>(".faulty :is(input, select, textarea)")?.focus());
}
