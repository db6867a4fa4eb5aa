import { useEffect, useState } from "preact/hooks";

/** The value as it was when it last stayed the same for a while, or after twice that time at the latest. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState({ value, at: 0 });
  useEffect(() => {
    if (settled.value === value) return;
    const isLate = Date.now() - settled.at > 2 * ms;
    const timer = setTimeout(() => setSettled({ value, at: Date.now() }), isLate ? 50 : ms);
    return () => clearTimeout(timer);
  }, [value, settled, ms]);
  return settled.value;
}
