import { useEffect } from "preact/hooks";

/** A shorter way is a click. */
const clickMax = 4;

/** Drags what a port shows with the mouse, and zooms with the wheel while Ctrl is down. Fingers scroll it anyway. */
export function usePan(port: { current: HTMLElement | null }, zoom: (larger: boolean) => void): void {
  useEffect(() => {
    const element = port.current;
    if (!element) return;
    let from: { x: number; y: number; left: number; top: number } | null = null;
    let isDragged = false;
    const down = (event: PointerEvent): void => {
      if (event.pointerType !== "mouse" || event.button !== 0) return;
      from = { x: event.clientX, y: event.clientY, left: element.scrollLeft, top: element.scrollTop };
      isDragged = false;
    };
    const move = (event: PointerEvent): void => {
      if (!from) return;
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      if (!isDragged && Math.hypot(x, y) < clickMax) return;
      isDragged = true;
      element.classList.add("grabbed");
      element.scrollTo(from.left - x, from.top - y);
    };
    const up = (): void => {
      from = null;
      element.classList.remove("grabbed");
    };
    // The end of a way is no click on the step below it.
    const click = (event: MouseEvent): void => {
      if (isDragged) event.stopPropagation();
      isDragged = false;
    };
    const wheel = (event: WheelEvent): void => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0);
    };
    element.addEventListener("pointerdown", down);
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    element.addEventListener("click", click, { capture: true });
    element.addEventListener("wheel", wheel, { passive: false });
    return () => {
      element.removeEventListener("pointerdown", down);
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      element.removeEventListener("click", click, { capture: true });
      element.removeEventListener("wheel", wheel);
    };
  }, []);
}
