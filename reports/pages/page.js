// Draws report.html from the two documents in it: `report` is report.json, of whose scenarios only those that
// begin a card are there, and `facts` is what C++ concludes. Text of a report becomes text nodes alone: nothing
// here reads markup. The page of a diff has no documents, and needs no script.
(() => {
  'use strict';

  const read = (id) => JSON.parse(document.getElementById(id)?.textContent ?? 'null');
  const report = read('report');
  const facts = read('facts');
  if (!report || !facts) return;

  const grow = (element, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (value || value === 0) element.setAttribute(name, value === true ? '' : value);
    }
    element.append(...children.flat(Infinity).filter((child) => child || child === 0));
    return element;
  };
  const el = (tag, attributes = {}, ...children) => grow(document.createElement(tag), attributes, children);
  const svg = document.querySelector('svg').namespaceURI;
  const shape = (tag, attributes = {}, ...children) => grow(document.createElementNS(svg, tag), attributes, children);

  const count = (number) => number.toLocaleString('en-US');
  const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
  const plain = (name) => name.replaceAll('_', ' ');
  const clip = (text, most) => (text.length > most ? `${text.slice(0, Math.max(most - 1, 1))}…` : text);
  const sentences = (list) => list.filter(Boolean).join(' ');
  const sum = (list, of) => list.reduce((total, item) => total + of(item), 0);
  const unique = (list) => [...new Set(list)];
  const byNumber = (list) => unique(list).sort((a, b) => a - b);
  // "ranks 0-2, 4"
  const ranksText = (ranks) => {
    const runs = [];
    for (const rank of byNumber(ranks)) {
      if (runs.at(-1)?.[1] === rank - 1) runs.at(-1)[1] = rank;
      else runs.push([rank, rank]);
    }
    const texts = runs.map(([first, last]) => (first === last ? first : `${first}-${last}`));
    return `rank${ranks.length === 1 ? '' : 's'} ${texts.join(', ')}`;
  };

  const signs = new Map([['pass', '✓'], ['fail', '✗'], ['survived', '✗'], ['inconclusive', '?'], ['not_run', '–']]);
  const verdict = (word, more = '') => el('span', {class: `v ${signs.has(word) ? word : 'fail'}`},
    el('span', {'aria-hidden': 'true'}, signs.get(word) ?? '✗'), ` ${plain(word)}${more}`);

  // A row is a list of cells: a number is set to the right, and {text, look, hint} has a class.
  const cell = (value) => {
    if (typeof value === 'number') return el('td', {class: 'n'}, count(value));
    if (typeof value === 'string' || value instanceof Node || Array.isArray(value)) return el('td', {}, value);
    return el('td', {class: value.look, title: value.hint}, el('span', {}, value.text));
  };
  const table = (head, rows, {look = 'plain', flagged = () => false} = {}) => el('div', {class: 'scroll'},
    el('table', {class: look}, el('thead', {}, el('tr', {}, head.map((name) => el('th', {scope: 'col'}, name)))),
      el('tbody', {}, rows.map((row) => el('tr', {class: flagged(row) && 'flagged'}, row.map(cell))))));
  const fold = (summary, open, ...children) => el('details', {open}, el('summary', {}, summary), children);
  const section = (id, title, look, ...children) => el('section', {id, class: look}, el('h2', {}, title), children);

  const status = (name) => name && [' ', el('span', {class: `status ${name}`}, name)];
  const strip = (letters) => el('span', {class: 'strip'},
    [...letters].map((letter) => el('span', {class: 'PFIN'.includes(letter) && letter}, letter)));
  const copied = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return 'Copied';
    } catch {
      getSelection().selectAllChildren(code);
      return document.execCommand('copy') ? 'Copied' : 'Selected';
    }
  };
  const replay = (command) => {
    const code = el('code', {}, command);
    const button = el('button', {type: 'button', class: 'copy screen'}, 'Copy');
    button.addEventListener('click', async () => {
      button.textContent = await copied(code);
      setTimeout(() => { button.textContent = 'Copy'; }, 2000);
    });
    return el('p', {class: 'replay'}, code, button);
  };

  // Pictures. Each has a title, and a description for whoever does not see it.
  const words = (x, y, text, look) => shape('text', {x, y, class: look}, text);
  const line = (x1, y1, x2, y2, look) => shape('line', {x1, y1, x2, y2, class: look});
  const box = (x, y, width, height, look, hint) => shape('rect', {x, y, width, height, class: look},
    hint && shape('title', {}, hint));
  const cross = (x, y) => shape('path', {d: `M${x - 6} ${y - 6}l12 12m0 -12l-12 12`, class: 'mark'});
  const figure = (title, said, width, height, drawn, caption) => el('figure', {class: width > 600 && 'wide'},
    el('figcaption', {}, title),
    el('div', {class: 'scroll'}, shape('svg', {width, height, role: 'img'}, shape('title', {}, title),
      shape('desc', {}, said), drawn)), caption && el('p', {}, caption));

  // How a tensor is cut over the ranks. Dimension 0 goes down, the last one to the right; those between are
  // flattened into rows, so a box that cuts one of them is several stretches.
  const stretchesMax = 512;
  const fits = ({offset, extent}, sides) => offset.length === sides.length && extent.length === sides.length &&
    sides.every((side, d) => extent[d] >= 1 && offset[d] >= 0 && offset[d] + extent[d] <= side);
  const stretches = ({offset, extent}, sides) => {
    const wide = sides.length > 1;
    let rows = [[0, 1]];
    for (const [d, side] of (wide ? sides.slice(0, -1) : sides).entries()) {
      if (extent[d] === side) {
        rows = rows.map(([first, last]) => [first * side, last * side]);
        continue;
      }
      const inner = [];
      for (const [first, last] of rows) {
        for (let at = first; at < last && inner.length < stretchesMax; ++at) {
          inner.push([at * side + offset[d], at * side + offset[d] + extent[d]]);
        }
      }
      rows = inner;
    }
    const left = wide ? offset.at(-1) : 0;
    return rows.map(([top, bottom]) => ({top, bottom, left, right: wide ? left + extent.at(-1) : 1}));
  };
  // Between two cuts the scale is even, and no such interval is too narrow for a label.
  const axis = (ends, begin, room, least) => {
    const cuts = byNumber(ends);
    const places = [begin];
    for (let i = 1; i < cuts.length; ++i) {
      const share = (cuts[i] - cuts[i - 1]) / (cuts.at(-1) - cuts[0]);
      places.push(places[i - 1] + Math.max(cuts.length > 66 ? 4 : least, room * share));
    }
    const place = (at) => {
      const next = Math.max(1, cuts.findIndex((cut, i) => cut > at || i === cuts.length - 1));
      const share = (at - cuts[next - 1]) / (cuts[next] - cuts[next - 1]);
      return places[next - 1] + (places[next] - places[next - 1]) * share;
    };
    return {cuts, place, end: places.at(-1)};
  };
  const cutFigure = ({shape: sides, index, rank}, cut, life, what) => {
    if (!cut || !sides.every((side) => side > 0 && side <= 2 ** 50)) return null;
    const holds = ({offset, extent}) => offset.every((at, d) => index[d] >= at && index[d] < at + extent[d]);
    const parts = cut.boxes.filter((part) => fits(part, sides)).map((part) => ({
      name: ranksText(part.ranks),
      text: `${ranksText(part.ranks)}: [${part.offset.map((at, d) => `${at}:${at + part.extent[d]}`).join(', ')}]`,
      odd: part.ranks[0] % 2 === 1,
      wrong: index.length ? holds(part) : cut.life === life && part.ranks.includes(rank),
      stretches: stretches(part, sides),
    }));
    if (!parts.length) return null;
    const wide = sides.length > 1;
    const height = (wide ? sides.slice(0, -1) : sides).reduce((a, b) => a * b, 1);
    const all = parts.flatMap((part) => part.stretches);
    const down = axis([0, height, ...all.flatMap((one) => [one.top, one.bottom])], 22, 130, 20);
    const right = axis([0, wide ? sides.at(-1) : 1, ...all.flatMap((one) => [one.left, one.right])],
      16 + 7 * `${height}`.length, wide ? 260 : 130, 58);
    const place = ({top, bottom, left, right: end}) => {
      const [x, y] = [right.place(left), down.place(top)];
      return [x, y, right.place(end) - x, down.place(bottom) - y];
    };
    const label = (one, text, look) => {
      const [x, y, w, h] = place(one);
      return h >= 14 && words(x + w / 2, y + h / 2 + 4, clip(text, w / 7), look);
    };
    const drawn = down.cuts.filter((at, i) => !i || down.place(at) - down.place(down.cuts[i - 1]) >= 12)
      .map((at) => words(right.place(0) - 6, down.place(at) + 4, `${at}`, 'end quiet'));
    if (wide) drawn.push(right.cuts.map((at) => words(right.place(at), 14, `${at}`, 'middle quiet')));
    const marks = [];
    for (const part of parts) {
      for (const one of part.stretches) {
        drawn.push(box(...place(one), `part${part.odd ? ' odd' : ''}`, part.text), label(one, part.name, 'middle'));
        if (part.wrong) marks.push(box(...place(one), 'wrong', part.text));
      }
    }
    // What no rank holds is hatched, what several boxes hold has a broken outline.
    const found = {missing: 0, twice: 0};
    const few = down.cuts.length * right.cuts.length * all.length < 4e6;
    for (let i = 1; i < down.cuts.length && few && !cut.boxes_left_out; ++i) {
      for (let j = 1; j < right.cuts.length; ++j) {
        const one = {top: down.cuts[i - 1], bottom: down.cuts[i], left: right.cuts[j - 1], right: right.cuts[j]};
        const holders = all.filter((other) => other.top <= one.top && other.bottom >= one.bottom &&
          other.left <= one.left && other.right >= one.right).length;
        if (holders === 1) continue;
        const name = holders ? 'twice' : 'missing';
        ++found[name];
        marks.push(box(...place(one), name, holders ? 'several boxes hold this' : 'no rank holds this'),
          label(one, name, 'middle bad plate'));
      }
    }
    const element = {offset: index, extent: index.map(() => 1)};
    if (index.length && fits(element, sides)) {
      const [x, y, w, h] = place(stretches(element, sides)[0]);
      const inside = (at, low, high) => Math.min(Math.max(at, low + 8), high - 8);
      marks.push(cross(inside(x + w / 2, right.place(0), right.end), inside(y + h / 2, down.place(0), down.end)));
    }
    const said = parts.map((part) => part.text + (part.wrong ? ', which has the wrong element' : ''));
    return figure(what, said.join('; '), right.end + 24, down.end + 12, [drawn, marks], sentences([
      sides.length === 2 && 'Dimension 0 goes down, dimension 1 to the right.',
      sides.length > 2 && `Dimensions 0 to ${sides.length - 2} are flattened and go down, the last to the right.`,
      index.length ? `The cross is the wrong element [${index.join(', ')}], the red outline its part.`
        : parts.some((part) => part.wrong) && `The red outline is what rank ${rank} holds.`,
      found.missing && 'No rank holds what is hatched in red.',
      found.twice && 'Several boxes hold what has a broken red outline.',
      cut.boxes_left_out && `${counted(cut.boxes_left_out, 'more part')}.`,
      parts.some((part) => part.stretches.length >= stretchesMax) &&
        `Of each part at most ${stretchesMax} stretches are drawn.`]));
  };
  const placements = ({failure}) => {
    const {placement, life} = failure ?? {};
    if (!placement) return null;
    const {key, shape: sides, saved, loaded} = placement;
    const figures = [cutFigure(placement, saved, life, saved && `Saved by life ${saved.life} (${saved.layout})`),
      cutFigure(placement, loaded, life, loaded && `Loaded by life ${loaded.life} (${loaded.layout})`)].filter(Boolean);
    return figures.length > 0 && [el('h4', {}, `Which rank holds what of ${key} [${sides.join(', ')}]`), figures];
  };

  // The lives over their steps, the checkpoints that they saved, and the step where it went wrong.
  const states = new Map([['kept', '◆'], ['pruned', '◇'], ['replaced', '◈'], ['damaged', '✗'], ['unfinished', '◌']]);
  const livesMax = 40;
  const lifeText = (life, i) => `life ${i}, ${life.layout}: ${plain(life.outcome)}` +
    (life.code ? ` with ${life.code}` : '') + (life.exit_code ? `, exit code ${life.exit_code}` : '') +
    `, steps ${life.first_step} to ${life.last_step}`;
  const faultText = (fault) => `${fault.kind} on rank ${fault.rank}: ` +
    (fault.fired ? 'fired' : fault.reached ? 'reached, not fired' : fault.armed ? 'armed, not reached' : 'not armed');
  const course = ({incarnations, generations = [], faults, failure}) => {
    const lives = incarnations.slice(0, livesMax);
    if (!lives.length) return null;
    const steps = lives.flatMap((life) => [life.first_step, life.last_step]);
    const first = Math.min(...steps);
    const last = Math.max(...steps, first + 1);
    const x = (step) => 12 + 336 * (step - first) / (last - first);
    const within = (step) => step !== null && step >= first && step <= last;
    const drawn = lives.map((life, i) => [words(8, 40 * i + 12, lifeText(life, i)),
      box(x(life.first_step), 40 * i + 20, Math.max(x(life.last_step) - x(life.first_step), 6), 9,
        `bar${['failed', 'cut_short'].includes(life.outcome) ? ' cut' : ''}`, lifeText(life, i)),
      generations.filter((one) => one.life === i && within(one.step)).map((one) =>
        words(x(one.step), 40 * i + 29, states.get(one.state) ?? '?', 'middle'))]);
    const bottom = 40 * lives.length;
    drawn.push(words(12, bottom + 6, `step ${first}`, 'quiet'), words(348, bottom + 6, `step ${last}`, 'end quiet'));
    const marked = failure && failure.life !== null && failure.life < lives.length && within(failure.step);
    if (marked) {
      const [at, y] = [x(failure.step), 40 * failure.life + 24];
      drawn.push(line(at, y - 9, at, y + 10, 'mark'), cross(at, y));
    }
    const used = [...states].filter(([state]) => generations.some((one) => one.state === state));
    const width = 16 + 7 * Math.max(50, ...lives.map((life, i) => lifeText(life, i).length));
    return [figure('The lives of the job, step by step', [...lives.map(lifeText), ...faults.map(faultText)].join('; '),
      width, bottom + 12, drawn, sentences([
        marked && `The red cross is where it went wrong: life ${failure.life}, step ${failure.step}.`,
        used.length && `Checkpoints: ${used.map(([state, sign]) => `${sign} ${state}`).join(', ')}.`,
        faults.length && `Planned faults: ${faults.map(faultText).join('; ')}.`,
        incarnations.length > livesMax && `Not drawn: ${incarnations.length - livesMax} more.`])),
    generations.length > 0 && fold(`${counted(generations.length, 'checkpoint')} in the order of their saves`, false,
      table(['step', 'saved by life', 'state', 'loaded by', 'skipped by'], generations.map((one) =>
        [one.step, one.life, one.state, one.loaded_by.join(', '), one.skipped_by.join(', ')])))];
  };

  // The loss beside that of the reference run, and the steps around the first wrong one.
  const losses = ({trajectory: points}) => {
    const reference = ({uninterrupted}) => uninterrupted?.loss;
    const own = ({loss}) => loss;
    const known = (loss) => loss !== undefined;
    const differs = (point) => known(reference(point)) && reference(point) !== own(point);
    const wrong = points.findIndex(differs);
    const finite = points.flatMap((point) => [own(point), reference(point)]).filter(Number.isFinite);
    if (wrong < 0 || !finite.length) return null;
    const [low, high, from, to] = [Math.min(...finite), Math.max(...finite), points[0].step, points.at(-1).step];
    const x = (step) => 80 + 270 * (to > from ? (step - from) / (to - from) : 0.5);
    const y = (loss) => 150 - 120 * (high > low ? (loss - low) / (high - low) : 0.5);
    // A value that is not finite breaks the curve, and stands above it as a word.
    const curve = (of, look) => {
      const shown = points.filter((point) => known(of(point)));
      const path = shown.map((point, i) => !Number.isFinite(of(point)) ? ''
        : `${i && Number.isFinite(of(shown[i - 1])) ? 'L' : 'M'}${x(point.step)} ${y(of(point))}`);
      return [shape('path', {class: look, d: path.join('')}), shown.filter((point) => !Number.isFinite(of(point)))
        .map((point) => words(x(point.step), 28, `${of(point)}`, 'middle bad'))];
    };
    const {step, loss} = points[wrong];
    const said = `The loss of ${counted(points.filter(differs).length, 'step')} differs from the reference run, ` +
      `first at step ${step}: ${loss} instead of ${reference(points[wrong])}.`;
    return [figure('Training loss beside the reference run', said, 366, 174, [
      line(78, 150, 354, 150), line(78, 20, 78, 150), words(74, 34, `${+high.toPrecision(6)}`, 'end quiet'),
      words(74, 153, `${+low.toPrecision(6)}`, 'end quiet'), words(80, 166, `step ${from}`, 'quiet'),
      words(354, 166, `step ${to}`, 'end quiet'), curve(reference, 'reference'), curve(own, 'own'),
      line(x(step), 16, x(step), 150, 'mark'), Number.isFinite(loss) && cross(x(step), y(loss)),
      words(Math.max(Math.min(x(step), 296), 140), 12, `wrong from step ${step}`, 'middle bad'),
    ], `${said} Solid: this run. Dashed: the reference run.`),
    table(['step', 'loss', 'reference run', ''], points.slice(Math.max(wrong - 2, 0), wrong + 3).map((point) =>
      [`${point.step}`, `${own(point)}`, `${reference(point) ?? ''}`,
        point.step === step ? '✗ first wrong step' : differs(point) ? 'differs' : '']),
    {flagged: (row) => row[3] !== ''})];
  };

  // What the ranks did at the end of the life: a column for each rank, a row for each event. It is no part of
  // the cause but for hangs, faults and crashes.
  const eventsMax = 60;
  const kinds = ['commit', 'phase', 'step', 'store', 'collective', 'fault', 'broken', 'end'];
  const timeText = (ns) => (ns < 1e6 ? `${Math.round(ns / 1e3)} us`
    : ns < 1e9 ? `${(ns / 1e6).toFixed(2)} ms` : `${(ns / 1e9).toFixed(3)} s`);
  const struck = (event) => event.kind === 'fault' || event.kind === 'broken' || event.missing.length > 0 ||
    (event.kind === 'end' && event.name !== 'failed');
  const eventText = (event) => `at ${timeText(event.end_ns)} ${ranksText(event.ranks)}: ${event.name}` +
    (event.detail ? ` ${event.detail}` : '') + (event.kind === 'fault' ? ' (fault)' : '') +
    (event.kind === 'broken' ? ' (not allowed)' : '') +
    (event.missing.length ? `, without ${ranksText(event.missing)}` : '');
  const labelOf = (event) => sentences([event.bad && '✗', event.name,
    event.kind === 'store' ? event.detail.split('/').at(-1)
      : ['end', 'fault', 'broken'].includes(event.kind) && event.detail,
    event.kind === 'broken' && 'is not allowed', event.missing.length && `without ${ranksText(event.missing)}`,
    event.times > 1 && `x ${event.times}`]);
  // Events in the order of the rows. What ranks did alike at one time is one row, and so is what they repeated.
  const eventRows = (events) => {
    const rows = [];
    for (const {ranks, ...event} of events) {
      const across = event.kind === 'collective' || event.kind === 'commit';
      rows.push({...event, ranks: ranks.map((one) => one.rank), times: 1,
        at: across ? event.end_ns : Math.min(event.end_ns, ...ranks.map((one) => one.begin_ns)),
        bad: struck(event) || event.cut || event.kind === 'end'});
    }
    rows.sort((a, b) => a.at - b.at || kinds.indexOf(a.kind) - kinds.indexOf(b.kind));
    const alike = (a, b) => a && a.kind === b.kind && a.name === b.name && a.detail === b.detail && a.cut === b.cut;
    return rows.reduce((joined, row) => {
      const last = joined.at(-1);
      if (alike(last, row) && last.at === row.at && last.end_ns === row.end_ns) last.ranks.push(...row.ranks);
      else if (alike(last, row) && !row.bad && ranksText(last.ranks) === ranksText(row.ranks)) ++last.times;
      else joined.push(row);
      return joined;
    }, []);
  };
  const spacetime = ({failure, crashed}) => {
    const timeline = failure?.timeline;
    if (!timeline?.ranks.length || !(crashed || timeline.events.some(struck))) return null;
    const rows = eventRows(timeline.events);
    const shown = rows.slice(-eventsMax);
    const columns = new Map(timeline.ranks.map((one, i) => [one.rank, 96 + 84 * i]));
    const x = (rank) => columns.get(rank) ?? 96;
    const y = (i) => 46 + 16 * i;
    const edge = 96 + 84 * columns.size;
    const drawn = timeline.ranks.map(({rank, place}) => {
      const guilty = rank === failure.rank;
      return [words(x(rank), 12, `${guilty ? '✗ ' : ''}rank ${rank}`, `middle${guilty ? ' bad' : ''}`),
        words(x(rank), 27, clip(place, 11), 'middle quiet'), line(x(rank), 33, x(rank), y(shown.length))];
    });
    for (const [i, event] of shown.entries()) {
      const at = event.ranks.map(x);
      const gone = event.missing.map(x);
      const look = `bar ${event.kind}${event.cut ? ' cut' : ''}`;
      if (!i || event.at !== shown[i - 1].at) drawn.push(words(60, y(i) + 4, timeText(event.at), 'end quiet'));
      if (event.kind === 'commit') {
        drawn.push(line(64, y(i) - 2, edge - 30, y(i) - 2), line(64, y(i) + 2, edge - 30, y(i) + 2));
      } else if (event.kind === 'collective') {
        const [from, to] = [Math.min(...at, ...gone), Math.max(...at, ...gone)];
        drawn.push(box(from, y(i) - 2, to - from + 1, 4, look, eventText(event)),
          at.map((cx) => shape('circle', {cx, cy: y(i), r: 4})),
          gone.map((cx) => shape('circle', {cx, cy: y(i), r: 5, class: 'missed'})));
      } else if (['fault', 'broken', 'end'].includes(event.kind)) {
        drawn.push(at.map((to) => cross(to, y(i))));
      } else {
        const wide = {phase: 14, step: 8}[event.kind] ?? 4;
        const until = Math.max(shown.findLastIndex((other) => other.at <= event.end_ns), i);
        drawn.push(at.map((to) => box(to - wide / 2, y(i) - 5, wide, y(until) - y(i) + 10, look, eventText(event))));
      }
      drawn.push(words(edge - 24, y(i) + 4, clip(labelOf(event), 66), event.bad && 'bad'));
    }
    const left = timeline.events_left_out + sum(rows.slice(0, -eventsMax), (row) => row.times);
    const worst = shown.filter((event) => struck(event) || event.kind === 'end' || event.kind === 'commit');
    return figure(`The end of life ${timeline.life}: what the ranks did`,
      worst.slice(-12).map(eventText).join('; ') || counted(timeline.events.length, 'event'),
      edge + 440, y(shown.length) + 8, drawn, sentences([
        'Virtual time runs down. A box is a phase, a step or a call to the store, with its name at the right; a bar ' +
        'with dots a collective, a ring a rank that did not come; a cross a fault, a step that is not allowed, or ' +
        'the end of a rank; a double line a commit. What is red went wrong.',
        left && `${counted(left, 'earlier event')} left out.`,
        timeline.ranks_left_out && `${counted(timeline.ranks_left_out, 'more rank')} left out.`]));
  };

  // Wrong keys on each rank of the life that failed; the number in a cell is that of the code.
  const ranksMax = 32;
  const wrongKeys = ({failure, code}) => {
    const wrong = failure?.wrong_keys;
    if (!wrong?.keys.length) return null;
    const codes = unique([code, ...wrong.keys.map((one) => one.code).sort()]);
    const ranks = byNumber(wrong.keys.flatMap((one) => one.ranks));
    const shown = ranks.slice(0, ranksMax);
    const keys = unique(wrong.keys.map((one) => one.key));
    const found = (key, rank) => {
      const numbers = wrong.keys.filter((one) => one.key === key && one.ranks.includes(rank))
        .map((one) => codes.indexOf(one.code) + 1);
      return {text: numbers.join(','), look: numbers.length ? `heat h${numbers.includes(1) ? 3 : 1}` : 'heat'};
    };
    return fold(`${counted(keys.length, 'wrong key')} by rank, in life ${wrong.life}`, keys.length <= 12,
      el('p', {class: 'quiet'}, sentences([`${codes.map((name, i) => `${i + 1} is ${name}`).join(', ')}.`,
        wrong.left_out && `${counted(wrong.left_out, 'more finding')} left out.`,
        ranks.length > ranksMax && `${counted(ranks.length - ranksMax, 'more rank')} left out.`])),
      table(['key', ...shown.map((rank) => `rank ${rank}`)],
        keys.map((key) => [key, ...shown.map((rank) => found(key, rank))]), {look: 'cells'}));
  };
  // What each rank compared; ranks with equal numbers share a row. Excused keys are left out.
  const keysMax = 100;
  const compared = ({ranks}) => {
    const lists = [['not_stored', facts.job ? 'not stored' : 'only in B'], ['shape_mismatches', 'other shape'],
      ['not_requested', facts.job ? 'stored but not requested' : 'only in A'], ['dtype_mismatches', 'other dtype']];
    const rows = new Map();
    const troubles = new Map();
    const add = (to, cells, rank) => {
      const name = JSON.stringify(cells);
      to.set(name, [cells, [...to.get(name)?.[1] ?? [], rank.rank]]);
    };
    for (const rank of ranks) {
      const kept = lists.map(([name]) => rank[name].filter((key) => !rank.excused.includes(key)));
      add(rows, [rank.compared, rank.elements, rank.bit_mismatches, `${rank.max_delta}`,
        ...kept.map((keys) => keys.length)], rank);
      for (const [i, keys] of kept.entries()) for (const key of keys) add(troubles, [key, lists[i][1]], rank);
    }
    const all = (of) => [...of.values()].map(([cells, on]) => (facts.job ? [ranksText(on), ...cells] : cells));
    const job = facts.job ? ['ranks'] : [];
    return [troubles.size > 0 && fold(counted(troubles.size, 'key') + ' missing or of another form',
      troubles.size <= 12, table([...job, 'key', 'trouble'], all(troubles).slice(0, keysMax)),
      troubles.size > keysMax && el('p', {}, `${count(troubles.size - keysMax)} more are in report.json.`)),
    ranks.length > 0 && fold(facts.job ? 'What each rank compared' : 'What was compared', false,
      table([...job, 'leaves', 'elements', 'other bits', 'max_delta', ...lists.map(([, name]) => name)], all(rows)))];
  };

  // A card for each cause: the smallest scenario that has it, and the names of the others.
  const alikeText = ({alike}) => (alike.length > 1 ? `, and ${count(alike.length - 1)} more like it` : '');
  const titleOf = (card) => [verdict(card.verdict), ' ', card.code || card.alike[0].name, status(card.alike[0].status)];
  const values = ({saved, loaded}) => {
    if (!saved && !loaded) return null;
    const names = facts.job ? ['expected: what was saved', 'found: what was loaded'] : facts.sides;
    const one = (i, value, look) => el('div', {class: look + (/^(|none|not stored)$/.test(value) ? ' missing' : '')},
      el('span', {}, names[i]), el('code', {}, value || 'missing'));
    return el('div', {class: 'values'}, one(0, saved, 'side'), one(1, loaded, 'side found'));
  };
  const details = (card, scenario) => {
    const fields = [...card.fields, ['proves', scenario.proves], ['file', scenario.file],
      ['layouts', scenario.layouts.join(' -> ')], ['world', scenario.world && `${scenario.world}`],
      ['diagnosis', scenario.diagnosis], ['event hash', scenario.event_hash],
      ['content digest', scenario.content_digest]];
    return fold('All that is known of it', false, el('dl', {}, fields.filter(([, value]) => value)
      .map(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])));
  };
  const cardOf = (card, number, scenario) => {
    const [first, ...others] = card.alike;
    return el('article', {id: `cause-${number}`, class: card.verdict},
      el('h3', {}, titleOf(card), card.key && [' ', el('code', {}, card.key)]),
      el('p', {class: 'reason'}, first.cause),
      card.meaning && el('p', {class: 'quiet'}, `${card.code}: ${card.meaning}`),
      card.fields && el('p', {}, 'In ', el('strong', {}, first.name), alikeText(card), '.'),
      scenario?.failure && values(scenario.failure),
      card.fields ? first.fix && replay(first.fix) : el('p', {class: 'quiet'}, first.fix),
      first.strip && el('p', {}, 'Oldest report to this one: ', strip(first.strip)),
      scenario && [placements, losses, course, spacetime, wrongKeys, compared].map((draw) => draw(scenario)),
      scenario && details(card, scenario),
      others.length > 0 && fold(`${count(others.length)} more like it`, false, table(['what', 'reason', 'see it again'],
        others.map((one) => [[one.name, status(one.status)], one.cause, one.fix]))));
  };

  // The sections. Those without content are left out.
  const cards = facts.cards ?? [];
  for (const file of facts.files) {
    for (const row of file.rows) {
      if (row[0] === '' || row[0].startsWith('[')) row[0] = file.begin + row[0];
      row[3] = facts.layouts[row[3]];
    }
  }
  const rows = facts.files.flatMap((file) => file.rows);
  const noun = facts.job ? 'scenario' : 'result';
  const {mutants, properties, matrix, coverage} = report;
  const spaces = [report.exhaustive, ...report.exhaustive_more].filter(Boolean);
  const survivors = mutants.filter((one) => !one.caught);
  const caughtText = `${count(mutants.length - survivors.length)} of ${count(mutants.length)}`;
  const passedPairs = (space) => sum(space.parts, (part) => part.passed);

  const worst = () => [
    el('p', {}, el('strong', {}, counted(sum(cards, (card) => card.alike.length), 'problem'), ', ',
      counted(cards.length, 'cause')), cards.length > 3 && '; the worst three:'),
    el('div', {class: 'worst'}, cards.slice(0, 3).map((card, i) => el('a', {href: `#cause-${i + 1}`, class: card.verdict},
      el('div', {class: 'code'}, titleOf(card)), card.key && el('code', {}, card.key),
      el('div', {class: 'reason'}, card.alike[0].cause),
      el('div', {class: 'quiet'}, card.fields && card.alike[0].name, alikeText(card)))))];
  const tiles = () => {
    const ran = rows.filter((row) => row[1] !== 'not_run');
    const passed = ran.filter((row) => row[1] === 'pass');
    const numbers = [
      [ran.length, `${count(passed.length)} of ${count(ran.length)}`, `${noun}s passed`],
      [ran.length, count(sum(rows, (row) => row[4])), 'elements compared'],
      [ran.length, count(sum(rows, (row) => row[5])), 'of them differ'],
      [facts.doubled, count(facts.doubled), 'ran twice'],
      [mutants.length, caughtText, 'mutants caught'],
      [properties.length, count(sum(properties, (one) => one.cases)), 'random cases'],
      [spaces.length, count(sum(spaces, passedPairs)), 'pairs of layouts passed'],
      [coverage, count(coverage?.runs ?? 0), 'random timelines']];
    return el('div', {class: 'tiles'}, numbers.filter(([known]) => known)
      .map(([, number, name]) => el('div', {}, el('b', {}, number), name)));
  };
  const causes = () => {
    let drawn = 0;
    const tries = facts.second_tries ?? [];
    const articles = cards.map((card, i) => cardOf(card, i + 1, card.fields && report.scenarios[drawn++]));
    return (cards.length > 0 || tries.length > 0) && section('problems', 'Causes', 'print', articles,
      tries.length > 0 && [el('h3', {}, 'Passed on the second try'), table([noun, 'how the first try ended'], tries)]);
  };
  const unsteadyMax = 400;
  const history = () => {
    if (!facts.history) return null;
    const {reports, resolved, unsteady} = facts.history;
    const strips = (list) => table(['what', 'oldest to newest'], list.map(([name, letters]) => [name, strip(letters)]));
    return section('history', 'History', 'print', el('p', {}, 'One letter per report, this one last: P passed, ' +
      'F failed, I inconclusive, N not run, a dot where it is not there.'),
    fold(counted(reports.length, 'report'), false, table(['report', 'started', 'commit', 'verdict'],
      reports.map((row) => [...row.slice(0, 3), verdict(row[3])]))),
    el('h3', {}, `Resolved: ${count(resolved.length)}`), resolved.length > 0 && strips(resolved),
    unsteady.length > 0 && fold(`No problem now, but not always alike: ${count(unsteady.length)}`, false,
      strips(unsteady.slice(0, unsteadyMax)),
      unsteady.length > unsteadyMax && el('p', {}, `${count(unsteady.length - unsteadyMax)} more are left out.`)));
  };
  const evidence = () => {
    const shown = facts.evidence.filter((row) => row[1]);
    const absent = facts.evidence.filter((row) => !row[1]);
    return section('evidence', 'What this report covers', 'screen',
      !facts.job && el('p', {}, 'This report is about stored checkpoints: no job was run.'),
      shown.length > 0 && table(['kind', 'in this report'], shown.map((row) => row.slice(0, 2))),
      absent.length > 0 && fold(`Not run: ${absent.map(([kind]) => kind).join(', ')}`, !cards.length,
        table(['kind', 'why'], absent.map(([kind, , why]) => [kind, why]))),
      report.not_claimed.length > 0 && fold(`What it does not claim: ${counted(report.not_claimed.length, 'point')}`, false,
        el('ul', {}, report.not_claimed.map((text) => el('li', {}, text)))),
      Object.entries(facts.not_run).map(([reason, names]) =>
        fold(`Not run: ${counted(names.length, noun)}: ${reason}`, false, el('p', {}, names.join(', ')))),
      facts.job && el('p', {class: 'quiet'}, `A gate can't know ${facts.not_known}.`));
  };
  const caughtBy = ({caught_by: by}) => (!by.length ? ''
    : `${by[0].property ? `property ${by[0].property}` : by[0].scenario}: ${by[0].verdict}: ${by[0].reason}` +
    (by.length > 1 ? ` (and ${counted(by.length - 1, 'other')})` : ''));
  const mutantTable = () => mutants.length > 0 && section('mutants', `Mutants: ${caughtText} caught`, 'screen',
    fold('Each mutant and what caught it', survivors.length > 0, table(['mutant', '', 'defect', 'caught by'],
      [...survivors, ...mutants.filter((one) => one.caught)].map((one) =>
        [one.name, one.caught ? 'caught' : verdict('survived'), one.defect, caughtBy(one)]),
      {flagged: (row) => row[1] !== 'caught'})));
  const propertyTable = () => properties.length > 0 && section('properties', 'Properties', 'screen',
    fold(counted(properties.length, 'row'), properties.some((one) => one.verdict !== 'pass'),
      table(['property', 'cases', 'seed', 'verdict', 'smallest case that failed'], properties.map((one) =>
        [one.name, one.cases, `${one.seed}`, verdict(one.verdict), one.counterexample ?? '']))));
  const pairTable = () => spaces.length > 0 && section('pairs', 'Pairs of layouts', 'screen', spaces.map((space) => [
    el('p', {}, `${space.model}, ${space.sharding}${space.hsdp ? ' with hsdp' : ''}, up to ` +
      `${counted(space.max_world, 'rank')}: ${count(passedPairs(space))} of ${counted(space.pairs, 'pair')} pass.`),
    fold(counted(space.parts.length, 'part'), false, table(['part', 'pairs', 'pass', 'rightly refused', 'wrong',
      'first wrong', 'elements'], space.parts.map((part) => [`${part.part}`, part.pairs, part.passed,
      Object.entries(part.refused).map(([code, number]) => `${code}: ${count(number)}`).join(', '),
      part.wrong, part.first_wrong, part.elements])))]));
  const matrixTable = () => {
    if (!matrix) return null;
    const family = (name) => name.slice(0, Math.max(name.lastIndexOf('/'), 0)) || '.';
    const families = unique(matrix.scenarios.map(family)).sort();
    const share = (row, name) => {
      const letters = matrix.scenarios.map((scenario, i) => (family(scenario) === name && row.cells[i]) || '.');
      const called = letters.filter((letter) => letter !== '.' && letter !== 'n').length;
      const caught = letters.filter((letter) => letter === 'C').length;
      return {text: called ? `${caught}/${called}` : '', look: `heat h${!caught ? 0 : caught < called ? 1 : 3}`};
    };
    return section('matrix', 'Matrix of mutants', 'screen',
      el('p', {}, `Each mutant ran in ${matrix.whole ? 'every scenario' : 'one row of each scenario file'}. 3/5: ` +
        'five scenarios of the family called the mutant, and three of them failed.'),
      fold('Each mutant in each family of scenarios, and the codes that found it', true,
        table(['mutant', ...families, 'codes'], matrix.rows.map((row) => [row.mutant,
          ...families.map((name) => share(row, name)), unique(Object.values(row.caught).flat()).join(', ')]),
        {look: 'cells'})));
  };
  const search = () => {
    if (!coverage) return null;
    const marks = [...coverage.marks].sort((a, b) => a.count - b.count);
    const never = marks.filter((one) => !one.count).length;
    const note = (one, i) => (!one.count ? 'never reached' : i < never + facts.rare ? 'rare' : '');
    return section('search', 'Random timelines', 'screen', el('p', {}, `${counted(coverage.runs, 'timeline')} with ` +
      `seed ${coverage.seed}; ${count(coverage.branches)} of them branched from another one, ` +
      `${count(coverage.inconclusive)} were inconclusive.`),
    coverage.findings.length > 0 && table(['status', 'finding', 'timelines', 'recipe', 'file'],
      coverage.findings.map((one) => [one.status, `${one.code}: ${one.reason}`, one.count, one.recipe, one.file])),
    fold(`${counted(marks.length, 'mark')}: ${count(facts.rare)} rare, ${count(never)} never reached`, false,
      table(['mark', 'timelines', ''], marks.map((one, i) => [one.name, one.count, note(one, i)]),
        {flagged: (row) => row[2] !== ''})));
  };

  // All scenarios, folded by file, with a filter and an order.
  const scenarios = () => {
    const secondsOf = (row) => (Number.isFinite(row[6]) ? row[6] : 0);
    const job = facts.job ? 1 : 0;
    const head = [noun, 'verdict', 'code', ...['layouts'].slice(0, job), 'elements', 'other bits', 's'];
    const files = facts.files.map((file) => {
      const verdicts = unique(file.rows.map((row) => row[1]));
      const open = verdicts.some((word) => word !== 'pass');
      const seconds = sum(file.rows, secondsOf);
      const drawn = table(head, file.rows.map((row) => [row[0], verdict(row[1]), row[2], ...[row[3]].slice(0, job),
        row[4], row[5], {text: secondsOf(row).toFixed(2), look: 'n'}]));
      const element = el('details', {open, 'data-s': seconds.toFixed(4)},
        el('summary', {}, el('span', {class: 'name'}, file.name), verdicts.map((word) =>
          [' ', verdict(word, ` ${count(file.rows.filter((row) => row[1] === word).length)}`)]),
        el('span', {class: 'quiet'}, ` ${seconds.toFixed(2)} s`)), drawn);
      const lines = [...drawn.querySelectorAll('tbody > tr')].map((line, i) => ({
        element: line, seconds: secondsOf(file.rows[i]), text: `${file.name} ${line.textContent}`.toLowerCase()}));
      return {element, open, seconds, body: drawn.querySelector('tbody'), lines};
    });
    const filter = el('input', {type: 'search', id: 'filter', placeholder: 'words of a name, code, layout'});
    const order = el('select', {id: 'order'}, el('option', {value: 'report'}, 'as in the report'),
      el('option', {value: 'time'}, 'slowest first'));
    const told = el('output', {id: 'count', for: 'filter'});
    const all = el('div', {id: 'files'}, files.map((file) => file.element));
    const show = () => {
      const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const file of files) {
        for (const one of file.lines) one.element.hidden = !wanted.every((word) => one.text.includes(word));
        const here = file.lines.filter((one) => !one.element.hidden).length;
        file.element.hidden = here === 0;
        file.element.open = wanted.length ? here > 0 : file.open;
        shown += here;
      }
      told.textContent = `${shown} of ${rows.length} shown`;
    };
    const sort = () => {
      const sorted = (list) => (order.value === 'time' ? [...list].sort((a, b) => b.seconds - a.seconds) : list);
      for (const file of files) file.body.append(...sorted(file.lines).map((one) => one.element));
      all.append(...sorted(files).map((file) => file.element));
    };
    filter.addEventListener('input', show);
    order.addEventListener('change', sort);
    show();
    return rows.length > 0 && section('scenarios', facts.job ? 'Scenarios' : 'Results', 'screen',
      el('p', {class: 'tools'}, el('label', {}, 'Filter ', filter), el('label', {}, 'Order ', order), told), all);
  };

  document.querySelector('header').append(...cards.length ? worst() : [], tiles());
  document.querySelector('main').replaceChildren(...[causes(), history(), evidence(), propertyTable(), pairTable(),
    mutantTable(), matrixTable(), search(), scenarios()].filter(Boolean));
})();
