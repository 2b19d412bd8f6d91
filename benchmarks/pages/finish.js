// Fills leaders; drops what overflows its box, with all that follows it there; draws rules by hand; tells the boxes of
// what is left.
(seed) => {
  const kept = new Set();
  for (const leader of document.querySelectorAll('.dots')) {
    const sign = leader.dataset.sign;
    const probe = document.createElement('span');
    probe.textContent = sign.repeat(20);
    leader.append(probe);
    const count = Math.floor(20 * leader.clientWidth / probe.getBoundingClientRect().width);
    leader.textContent = sign.repeat(Math.max(0, count - 1));
  }
  for (const flow of document.querySelectorAll('.flow')) {
    const box = flow.getBoundingClientRect();
    const outside = (r) => r.right > box.right + 2 || r.left < box.left - 2 || r.bottom > box.bottom + 2 || r.top < box.top - 2;
    const blocks = [...flow.querySelectorAll('[data-block]')];
    let count = blocks.findIndex((block) => [...block.getClientRects()].some(outside));
    if (count < 0) count = blocks.length;
    else while (count > 1 && blocks[count - 1].matches('h2, .caption, img')) count--;
    blocks.slice(count).forEach((block) => (block.closest('.display') ?? block).remove());
  }
  let state = seed >>> 0;
  const jitter = (size) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 4294967296 - 0.5) * 2 * size;
  };
  for (const table of document.querySelectorAll('.hand-ruled')) {
    const lines = new Map();
    for (const cell of table.querySelectorAll('td, th')) {
      const r = cell.getBoundingClientRect();
      const [l, t, w, h] = [r.left, r.top, r.width, r.height].map(Math.round);
      for (const [x1, y1, x2, y2] of [[l, t, l + w, t], [l, t + h, l + w, t + h], [l, t, l, t + h], [l + w, t, l + w, t + h]])
        lines.set([x1, y1, x2, y2].join(), [x1, y1, x2, y2]);
    }
    let path = '';
    for (const [x1, y1, x2, y2] of lines.values()) {
      const [a, b] = x1 === x2 ? [0, 3] : [3, 0];
      path += `M${x1 - Math.abs(jitter(a))} ${y1 - Math.abs(jitter(b)) + jitter(1)}`;
      path += `Q${(x1 + x2) / 2 + jitter(b + 1)} ${(y1 + y2) / 2 + jitter(a)} ${x2 + Math.abs(jitter(a)) + jitter(1)} ${y2 + Math.abs(jitter(b))}`;
    }
    document.querySelector('main').insertAdjacentHTML('beforeend',
      `<svg style="position:absolute;left:0;top:0;width:100%;height:100%"><path d="${path}" fill="none" stroke="#334" stroke-width="1.4" stroke-linecap="round"/></svg>`);
  }
  const found = {};
  for (const block of document.querySelectorAll('[data-block]'))
    found[block.dataset.block] = [...block.getClientRects()].map((r) => [r.left, r.top, r.right, r.bottom]);
  return found;
}
