/** Icons of 16 by 16 in the colour of the text. They always stand beside a word. */
const shapes = {
  home: "M2.5 7 8 2.5 13.5 7v6.5h-4V10h-3v3.5h-4z",
  executions: "M2.5 3.5h11M2.5 8h7M2.5 12.5h9",
  inbox: "M2.5 9 4 3h8l1.5 6v4h-11zM2.5 9h3.2l.8 1.8h3l.8-1.8h3.2",
  workflows: "M5.5 2h5v3.5h-5zM2 10.5h4.5V14H2zM9.5 10.5H14V14H9.5zM8 5.5V8M4.2 10.5V8h7.6v2.5",
  agents: "M2.5 3h11v8H8l-3 2.5V11H2.5zM5.3 7h.01M8 7h.01M10.7 7h.01",
  tools: "M9.600 6.400 3.400 12.600M13.300 4.900a3.300 3.300 0 0 1-4.500 3.900L5.200 12.400a1.600 1.600 0 0 1-2.300-2.300L6.500 6.500a3.300 3.300 0 0 1 4.200-4.200L8.900 4.300l.4 1.900 1.900.4z",
  observe: "M2 8h2.5l1.5-4.5 3 9L10.8 8H14",
  connect: "M6.5 9.5 9.5 6.5M7 4.8l1.6-1.6a2.8 2.8 0 0 1 4 4L11 8.8M9 11.2l-1.6 1.6a2.8 2.8 0 0 1-4-4L5 7.2",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.3 10.3 13.5 13.5",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  down: "M4 6.5 8 10.5 12 6.5",
  right: "M6.5 4 10.5 8 6.5 12",
  user: "M8 8a2.6 2.6 0 1 0 0-5.2A2.6 2.6 0 0 0 8 8zM3 13.5c.5-2.4 2.4-3.6 5-3.6s4.500 1.200 5 3.600",
} as const;

export type IconName = keyof typeof shapes;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={shapes[name]} />
    </svg>
  );
}
