'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const form = document.getElementById('controls');
  const seconds = [[1, 'seconds'], [60, 'minutes'], [3600, 'hours'], [86400, 'days']];

  /* ---- Axes, as gen/report/axis.c ---- */

  const trim = text => text.includes('.') ? text.replace(/\.?0+$/, '') : text;

  const label = (number, unit, largest) => {
    const size = Math.abs(number);
    if (size === 0 || size < unit / 1e6) return '0';
    if (largest >= 1e15 || largest < 1e-3) {
      const digits = Math.min(9, Math.max(0, Math.floor(Math.log10(size)) - Math.floor(Math.log10(unit) + 1e-9)));
      const [base, power] = number.toExponential(digits).split('e');
      return trim(base) + 'e' + Number(power);
    }
    const [by, letter] = largest >= 1e9 ? [1e9, 'G'] : largest >= 1e6 ? [1e6, 'M'] : largest >= 1e4 ? [1e3, 'k'] : [1, ''];
    const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10(unit / by) - 1e-9)));
    return trim((number / by).toFixed(decimals)) + letter;
  };

  const roundUp = least => {
    const power = Math.pow(10, Math.floor(Math.log10(least)));
    const of = least / power;
    return (of <= 1.000001 ? 1 : of <= 2.000001 ? 2 : of <= 5.000001 ? 5 : 10) * power;
  };

  const axisOf = (least, most, log) => {
    const size = Math.max(Math.abs(least), Math.abs(most)), about = 5;
    if (most - least <= 1e-9 * size) {
      const half = size > 0 ? 0.1 * size : 1;
      least -= half;
      most += half;
    }
    if (log && most / least < 1.5) {
      least /= 1.25;
      most *= 1.25;
    }
    const at = log ? value => Math.log(value / least) / Math.log(most / least) : value => (value - least) / (most - least);
    let ticks = [];
    if (log) {
      const from = Math.floor(Math.log10(least)), to = Math.ceil(Math.log10(most));
      const stride = Math.max(1, Math.ceil((to - from) / about));
      for (let power = stride * Math.ceil(from / stride); power <= to; power += stride)
        for (const within of to - from <= 3 ? [1, 2, 5] : [1]) {
          const value = within * Math.pow(10, power);
          if (value >= least * 0.999999 && value <= most * 1.000001) ticks.push([value, value, value]);
        }
    }
    if (ticks.length < 2) {
      ticks = [];
      const unit = roundUp((most - least) / about);
      for (let i = Math.ceil(least / unit - 1e-6); i * unit <= most + 1e-6 * unit; i++) ticks.push([i * unit, unit, Math.max(Math.abs(least), Math.abs(most))]);
    }
    return {least, most, at, ticks: ticks.map(([value, unit, largest]) => ({at: Math.min(1, Math.max(0, at(value))), label: label(value, unit, largest)}))};
  };

  /* ---- What is drawn ---- */

  const state = () => ({
    x: form.elements.x.value,
    log: form.elements.log.checked,
    smoothing: Number(form.elements.smoothing.value),
    runs: data.runs.map((run, i) => data.runs.length === 1 ||
      document.querySelector('#controls input[name=run][value="' + i + '"]').checked)
  });

  const xsOf = (run, x) =>
    x === 'steps' ? run.last : x === 'time' ? run.seconds
      : run.units_per_step > 0 ? run.last.map(step => step * run.units_per_step) : undefined;

  /* A mean over the columns so far, in which each has less weight than the one after it. */
  const smooth = (values, by) => {
    let sum = 0, weight = 0;
    return values.map(value => {
      if (value === null) return null;
      sum = by * sum + (1 - by) * value;
      weight = by * weight + (1 - by);
      return sum / weight;
    });
  };

  const linesOf = (chart, how) => {
    const lines = [];
    data.charts[chart].forEach((name, way) => data.runs.forEach((run, i) => {
      const series = run.series[name], xs = xsOf(run, how.x);
      if (!how.runs[i] || series === undefined || xs === undefined) return;
      const many = series.mean.filter(value => value !== null).length;
      const gaps = many > 0.9 * series.mean.length;
      lines.push({run, i, name, second: way > 0, xs, gaps, series, many,
        mean: how.smoothing > 0 ? smooth(series.mean, how.smoothing) : series.mean});
    }));
    return lines;
  };

  const shown = (value, how) => value !== null && (!how.log || value > 0);

  const rangeOf = (lines, how) => {
    let least = Infinity, most = -Infinity, first = Infinity, last = 0;
    for (const line of lines) {
      const band = how.smoothing > 0 ? line.series.mean : undefined;
      line.xs.forEach((x, k) => {
        for (const values of [band || line.series.least || line.mean, band || line.series.most || line.mean]) {
          const value = values[k];
          if (!shown(value, how)) continue;
          least = Math.min(least, value);
          most = Math.max(most, value);
          first = Math.min(first, x);
          last = Math.max(last, x);
        }
      });
    }
    if (least > most) return undefined;
    const margin = 0.04 * (most - least);
    return {x: axisOf(first > last / 2 ? first : 0, last, false),
      y: how.log ? axisOf(least, most, true)
        : axisOf(least >= 0 && least < margin ? 0 : least - margin, most + margin, false)};
  };

  const pathOf = (line, values, axes, how) => {
    let path = '', next = 'M';
    line.xs.forEach((x, k) => {
      if (shown(values[k], how)) {
        path += next + (1000 * axes.x.at(x)).toFixed(2) + ' ' + (1000 * (1 - axes.y.at(values[k]))).toFixed(2);
        next = 'L';
      } else if (line.gaps) next = 'M';
    });
    return path;
  };

  const bandOf = (line, axes, how) => {
    let path = '', part = [];
    const end = () => {
      if (part.length > 0) {
        const put = (k, values) => (1000 * axes.x.at(line.xs[k])).toFixed(2) + ' ' +
          (1000 * (1 - axes.y.at(Math.max(values[k], axes.y.least)))).toFixed(2);
        path += 'M' + part.map(k => put(k, line.series.most)).join('L') + 'L' +
          part.slice().reverse().map(k => put(k, line.series.least)).join('L') + 'Z';
      }
      part = [];
    };
    line.xs.forEach((x, k) => {
      if (shown(line.series.mean[k], how) && (!how.log || line.series.most[k] > 0)) part.push(k);
      else if (line.gaps) end();
    });
    end();
    return path;
  };

  const element = (name, classes, path) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    made.setAttribute('class', classes);
    made.setAttribute('d', path);
    return made;
  };

  const ticks = (box, axis, side) => box.replaceChildren(...axis.ticks.map(tick => {
    const span = document.createElement('span');
    span.textContent = tick.label;
    span.style[side] = (100 * tick.at).toFixed(3) + '%';
    return span;
  }));

  const nameOf = (how, axes) => {
    if (how.x === 'steps') return 'steps';
    if (how.x === 'units') return unitName;
    return axes.unit[1];
  };

  const unitName = (data.runs.find(run => run.unit !== '') || {unit: 'token'}).unit + 's';

  const draw = figure => {
    const how = state(), lines = linesOf(Number(figure.dataset.chart), how);
    const by = how.x === 'time'
      ? seconds.filter(([size]) => size <= Math.max(1, ...lines.map(line => line.xs[line.xs.length - 1])) / 3).pop() || seconds[0]
      : [1, ''];
    if (by[0] > 1) for (const line of lines) line.xs = line.xs.map(x => x / by[0]);
    const axes = rangeOf(lines, how), curves = figure.querySelector('.curves');
    figure.view = {lines, axes, how, by};
    curves.replaceChildren();
    if (axes === undefined) {
      figure.querySelector('.readout').textContent = lines.length === 0 ? 'nothing to show' : 'nothing above 0';
      return;
    }
    figure.querySelector('.readout').textContent = '';
    axes.unit = by;
    for (const line of lines)
      if (how.smoothing > 0) curves.append(element('path', 'line faint r' + line.i % 8, pathOf(line, line.series.mean, axes, how)));
      else if (line.series.least) curves.append(element('path', 'band r' + line.i % 8, bandOf(line, axes, how)));
    for (const line of lines) {
      const classes = ' r' + line.i % 8 + (line.i >= 8 ? ' again' : '') + (line.second ? ' second' : '');
      const path = pathOf(line, line.mean, axes, how);
      curves.append(element('path', 'line' + classes, path));
      if (line.many === 1 || (line.second && line.many <= 60))
        curves.append(element('path', 'dots r' + line.i % 8, path.replace(/L/g, 'M').replace(/(M[^M]*)/g, '$1h0')));
    }
    figure.querySelector('.grid').setAttribute('d',
      axes.y.ticks.map(tick => 'M0 ' + (1000 - 1000 * tick.at).toFixed(2) + 'H1000').join('') +
      axes.x.ticks.map(tick => 'M' + (1000 * tick.at).toFixed(2) + ' 0V1000').join(''));
    ticks(figure.querySelector('.y'), axes.y, 'bottom');
    const box = figure.querySelector('.x');
    ticks(box, axes.x, 'left');
    const name = document.createElement('span');
    name.className = 'name';
    name.textContent = nameOf(how, axes);
    box.append(name);
  };

  /* ---- Reading a point ---- */

  const nearest = (xs, x) => {
    let from = 0, to = xs.length - 1;
    while (to - from > 1) {
      const middle = (from + to) >> 1;
      if (xs[middle] < x) from = middle;
      else to = middle;
    }
    return Math.abs(xs[from] - x) <= Math.abs(xs[to] - x) ? from : to;
  };

  const number = value => Math.abs(value) >= 1e4 && Math.abs(value) < 1e15 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(4)));

  /* Shows the numbers at `x`; of series that not every column has, those at the same column alone. */
  const read = (figure, x) => {
    const {lines, axes, how} = figure.view;
    if (axes === undefined) return;
    const parts = [];
    let at;
    for (const line of lines) {
      const k = nearest(line.xs, x);
      if (at === undefined) at = line.xs[k];
      if (line.mean[k] === null) continue;
      parts.push((data.runs.length > 1 ? line.run.name + ' ' : '') + (data.charts[Number(figure.dataset.chart)].length > 1 ? line.name + ' ' : '') + number(line.mean[k]));
    }
    if (at === undefined) return;
    figure.querySelector('.readout').textContent = number(at) + ' ' + nameOf(how, axes) + ': ' + parts.join(', ');
    let cursor = figure.querySelector('.cursor');
    if (cursor === null) {
      cursor = document.createElement('div');
      cursor.className = 'cursor';
      figure.querySelector('.plot').append(cursor);
    }
    cursor.style.left = 100 * axes.x.at(at) + '%';
    figure.at = at;
  };

  const clear = figure => {
    const cursor = figure.querySelector('.cursor');
    if (cursor !== null) cursor.remove();
    figure.querySelector('.readout').textContent = '';
  };

  const listen = figure => {
    const plot = figure.querySelector('.plot');
    plot.tabIndex = 0;
    plot.addEventListener('pointermove', event => {
      const box = plot.getBoundingClientRect(), {axes} = figure.view;
      if (axes !== undefined) read(figure, axes.x.least + (axes.x.most - axes.x.least) * (event.clientX - box.left) / box.width);
    });
    plot.addEventListener('pointerleave', () => clear(figure));
    plot.addEventListener('blur', () => clear(figure));
    plot.addEventListener('keydown', event => {
      const {lines, axes} = figure.view, way = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity}[event.key];
      if (way === undefined || axes === undefined) return;
      const xs = lines[0].xs, last = xs.length - 1;
      const from = figure.at === undefined ? (way > 0 ? -1 : last + 1) : nearest(xs, figure.at);
      read(figure, xs[Math.min(last, Math.max(0, from + way))]);
      event.preventDefault();
    });
  };

  /* ---- The switches ---- */

  const figures = [...document.querySelectorAll('figure[data-chart]')];
  const able = {units: data.runs.some(run => run.units_per_step > 0), time: data.runs.some(run => run.seconds !== undefined)};
  for (const input of form.querySelectorAll('input[name=x]'))
    if (able[input.value] === false) input.parentElement.hidden = true;
  document.getElementById('units').textContent = unitName;
  form.hidden = false;
  form.addEventListener('input', () => {
    form.elements.by.value = form.elements.smoothing.value;
    figures.forEach(draw);
  });
  form.addEventListener('submit', event => event.preventDefault());
  figures.forEach(figure => {
    draw(figure);
    listen(figure);
  });
  window.addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(details => { details.open = true; }));
})();
