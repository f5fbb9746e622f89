// The training behind grokking-here.mjs: a network, its gradient and AdamW. All of it is one function: a worker cannot
// load a module for a page that was opened as a file, but it can be given the source of a function.
// In double precision: in single precision two machines whose rounding differs are soon apart, and no test could hold
// the losses to those of torch.
//
// `serve` in the worker hears first of a network before training and says how it fares; each number that it hears then
// is for how many milliseconds to train (one step at least), and it says how far it has come.

export const trainer = () => {
  const { exp, log, sqrt, min, max, ceil, floor, PI, cos, sin } = Math;
  const [BETA_1, BETA_2, EPSILON] = [0.9, 0.98, 1e-8];
  const EVERY = 10; // steps between measurements
  const SHOWN = 3; // circles

  // --- WebAssembly for what takes long: c += a b for a small tile of c, two numbers in one instruction ---

  const unsigned = (n) => (n < 128 ? [n] : [(n & 127) | 128, ...unsigned(n >> 7)]);
  const sized = (bytes) => [...unsigned(bytes.length), ...bytes];
  const listed = (parts) => [...unsigned(parts.length), ...parts.flat()];
  const section = (id, parts) => [id, ...sized(listed(parts))];
  const text = (letters) => listed([...letters].map((letter) => [letter.charCodeAt(0)]));
  const [I32, V128, FUNCTION, MEMORY] = [0x7f, 0x7b, 0x60, 2];

  /**
   * The body of a function of where c, a and b are, how long the rows of a are, and how many bytes lie between the rows
   * of c, the rows of a, the columns of a, and the rows of b. So many rows of 2 `wide` columns of c are summed in the
   * registers of the processor, on a walk along the rows of a and down b.
   */
  const tile = (rows, wide) => {
    const [C, A, B, LENGTH, C_DOWN, A_DOWN, A_RIGHT, B_DOWN] = [0, 1, 2, 3, 4, 5, 6, 7];
    const along = (row) => 8 + row; // the place in each row of a
    const twice = 8 + rows; // one number of a, two times
    const beside = (i) => twice + 1 + i; // two numbers of b each
    const sum = (row, i) => beside(wide) + row * wide + i;
    const [get, set] = [(local) => [0x20, local], (local) => [0x21, local]];
    const move = (local, by) => [...get(local), ...get(by), 0x6a, ...set(local)]; // local += by
    const at = (i) => [0, 16 * i]; // nothing said of alignment; so many bytes on
    const [load, loadTwice, store] = [(i) => [0xfd, 0, ...at(i)], [0xfd, 10, ...at(0)], (i) => [0xfd, 11, ...at(i)]];
    const [plus, times] = [[0xfd, 0xf0, 1], [0xfd, 0xf2, 1]];
    const each = (count, code) => Array.from({ length: count }, (_, i) => code(i)).flat();
    return sized([
      ...listed([[rows, I32], [1 + wide + rows * wide, V128]]), // the locals, which begin as 0
      ...each(rows, (row) => [...get(A), ...set(along(row)), ...move(A, A_DOWN)]),
      ...[0x03, 0x40], // loop
      ...each(wide, (i) => [...get(B), ...load(i), ...set(beside(i))]),
      ...each(rows, (row) => [
        ...[...get(along(row)), ...loadTwice, ...set(twice), ...move(along(row), A_RIGHT)],
        ...each(wide, (i) => [
          ...[...get(sum(row, i)), ...get(twice), ...get(beside(i)), ...times, ...plus, ...set(sum(row, i))],
        ]),
      ]),
      ...move(B, B_DOWN),
      ...[...get(LENGTH), 0x41, 1, 0x6b, ...set(LENGTH), ...get(LENGTH)], // length -= 1
      ...[0x0d, 0, 0x0b], // once more, unless it is 0
      ...each(rows, (row) => [
        ...each(wide, (i) => [...get(C), ...get(C), ...load(i), ...get(sum(row, i)), ...plus, ...store(i)]),
        ...move(C, C_DOWN),
      ]),
      0x0b,
    ]);
  };

  // Numbers lie in the lower half of the memory, the gradient of each so many bytes further up.
  const HALF = 64 << 20;
  const memory = new WebAssembly.Memory({ initial: (2 * HALF) >> 16 });
  const numbers = new Float64Array(memory.buffer);
  const tiles = { block: tile(4, 2), line: tile(1, 8), quad: tile(1, 2) };
  const program = [
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [[FUNCTION, ...listed(Array(8).fill([I32])), 0]]), // the type of all three
    ...section(2, [[...text("m"), ...text("m"), MEMORY, 0, 1]]),
    ...section(3, Object.keys(tiles).map(() => [0])),
    ...section(7, Object.keys(tiles).map((name, i) => [...text(name), 0, i])), // exported
    ...section(10, Object.values(tiles)),
  ];
  const compiled = new WebAssembly.Module(Uint8Array.from(program));
  const { block, line, quad } = new WebAssembly.Instance(compiled, { m: { m: memory } }).exports;

  // --- matrices ---

  const up = (n, unit) => unit * ceil(n / unit);
  let free = 0; // bytes

  /** Zeros row by row: where they are, and how many bytes lie between rows and between columns. */
  const matrix = (rows, columns) => {
    const made = { at: free, rows, columns, down: 8 * columns, right: 8 };
    free += 8 * rows * columns;
    if (free > HALF) throw RangeError(`a network of this size needs more than ${HALF / 2 ** 20} MiB`);
    return made;
  };
  const part = (m, row, rows, column = 0, columns = m.columns) =>
    ({ ...m, at: m.at + row * m.down + column * m.right, rows, columns });
  const flipped = (m) => ({ ...m, rows: m.columns, columns: m.rows, down: m.right, right: m.down });
  const gradient = (m) => ({ ...m, at: m.at + HALF });
  /** The numbers of a row, or of all of a matrix that lies in one piece. */
  const row = (m, i, length = m.columns) => numbers.subarray((m.at + i * m.down) / 8, (m.at + i * m.down) / 8 + length);
  const whole = (m) => row(m, 0, m.rows * m.columns);

  const copies = matrix(640, 480);
  const copy = (m) => {
    if (m.rows * m.columns > copies.rows * copies.columns)
      throw RangeError(`a table of ${m.rows} by ${m.columns} is more than what is trained here`);
    const made = { ...copies, rows: m.rows, columns: m.columns, down: 8 * m.columns };
    for (let i = 0; i < m.rows; i++) {
      let [from, to] = [(m.at + i * m.down) / 8, (made.at + i * made.down) / 8];
      for (let j = 0; j < m.columns; j++, from += m.right / 8) numbers[to++] = numbers[from];
    }
    return made;
  };

  const DEEP = 128; // columns of a at once, so that what is read of b stays in a cache

  /** c += a b. Rows and columns come in fours: what a network has too few of is filled up with zeros. */
  const multiply = (a, b, c) => {
    if (c.right !== 8) return multiply(flipped(b), flipped(a), flipped(c));
    if (b.right !== 8) b = copy(b);
    for (let k = 0; k < a.columns; k += DEEP)
      for (let i = 0; i < c.rows; i += 4)
        for (let j = 0; j < c.columns; j += 4)
          block(
            c.at + i * c.down + 8 * j, a.at + i * a.down + k * a.right, b.at + k * b.down + 8 * j,
            min(DEEP, a.columns - k), c.down, a.down, a.right, b.down,
          );
  };

  // --- the network and its training ---

  /** Every pair once, a <= b, since without positions (b, a) is the same: how often it trains and tests. */
  const pairs = (P, seen) => {
    const trains = (a, b) => (seen[(a * P + b) >> 3] >> (7 - ((a * P + b) & 7))) & 1;
    const all = [];
    for (let a = 0; a < P; a++)
      for (let b = a; b < P; b++) {
        const train = trains(a, b) + (a === b ? 0 : trains(b, a));
        all.push({ a, b, answer: (a + b) % P, train, test: (a === b ? 1 : 2) - train });
      }
    return all;
  };

  /**
   * A training from weights by name, {shape, values}: `step()` takes one and gives the loss before it; `measure()` says
   * how training and unseen pairs fare now; `gradients()` are those of the loss, by name, and `circles(count)` and
   * `petals(points, a)` are what is drawn.
   *
   * P residues, R = P + 1 tokens, D d_model, H heads, at most 4, K d_head, F neurons, N pairs.
   */
  const training = (initial, seen, { lr, decay, warmup }) => {
    const [[R, D], [H, , K], F] = [initial.W_E.shape, initial.W_Q.shape, initial.W_in.shape[1]];
    const P = R - 1;
    const [known, unseen] = [true, false].map((some) => pairs(P, seen).filter(({ train }) => train > 0 === some));
    const all = [...known, ...unseen];
    const total = known.reduce((sum, { train }) => sum + train, 0);
    const trained = up(known.length, 4);

    // The weights. Neurons and logits both read the residual stream: their matrices lie side by side.
    const [tokens, answers] = [up(R + 3, 4), up(R, 4)];
    const reads = F + up(R, 16);
    const first = free;
    const w = {
      W_E: matrix(tokens, D), W_Q: matrix(H * D, K), W_K: matrix(H * D, K), W_V: matrix(H * D, K),
      W_O: matrix(H * K, D), W_out: matrix(F, D), b_in: matrix(4, F), b_out: matrix(4, D),
    };
    const read = matrix(D, reads);
    const [values, slopes] = [0, HALF].map((from) => numbers.subarray((from + first) / 8, (from + free) / 8));
    Object.assign(w, { W_in: part(read, 0, D, 0, F), W_U: part(read, 0, D, F, answers) });
    for (const [name, { shape, values }] of Object.entries(initial)) {
      const length = shape.at(-1);
      for (let i = 0; i * length < values.length; i++)
        row(w[name], i).set(values.subarray(i * length, (i + 1) * length));
    }
    const equals = part(w.W_E, P, 4); // and three rows of zeros
    const head = (m, h) => part(m, h * (m.rows / H), m.rows / H);
    const one = matrix(4, 8);
    row(one, 0)[0] = 1;

    // What is computed on the way, anew each time.
    const begin = free;
    const heads = Array.from({ length: H }, () => ({ q: matrix(4, K), u: matrix(8, D), scores: matrix(tokens, 8) }));
    const v = matrix(tokens, H * K);
    const own = matrix(4, H * K); // v of "="
    const moved = matrix(H * K, reads);
    const table = matrix(tokens * H, reads);
    const shared = matrix(4, reads);
    const W_L = matrix(F, up(R, 16));
    const pattern = matrix(up(all.length, 4), 12); // at a, b and "=", four heads each
    const y = matrix(up(all.length, 4), reads); // neurons and logits
    const wipe = (from, bytes) => numbers.fill(0, from / 8, (from + bytes) / 8);

    /** What leads to the logits of the first N pairs, and back from there to the gradients. */
    const network = (N) => {
      const steps = [];
      const product = (a, b, c) =>
        steps.push({
          forward: () => multiply(a, b, c),
          backward: () => {
            multiply(gradient(c), flipped(b), gradient(a));
            multiply(flipped(a), gradient(c), gradient(b));
          },
        });
      const [neurons, logits] = [part(y, 0, N, 0, F), part(y, 0, N, F, answers)];

      // Attention of "=", the only token that is read, costs next to nothing: one query, keys and values of R tokens.
      heads.forEach(({ q, u, scores }, h) => {
        product(equals, head(w.W_Q, h), q);
        product(q, flipped(head(w.W_K, h)), part(u, 0, 4));
        product(w.W_E, flipped(u), scores);
        product(w.W_E, head(w.W_V, h), part(v, 0, tokens, h * K, K));
      });
      // The weights of a head sum to 1: it moves what "=" holds, and of a and b what they hold beyond that.
      steps.push({
        forward: () => {
          row(own, 0).set(row(v, P));
          for (let t = 0; t < R; t++) row(v, t).forEach((_, i, at) => (at[i] -= row(own, 0)[i]));
        },
        backward: () => {
          const [of_v, of_own] = [gradient(v), row(gradient(own), 0)];
          for (let t = 0; t < P; t++) row(of_v, t).forEach((value, i) => (of_own[i] -= value));
          row(of_v, P).set(of_own);
        },
      });
      // What neurons and logits find at each token by each head, and what they find in any case.
      product(w.W_O, read, moved);
      for (let h = 0; h < H; h++) {
        const found = { ...part(table, h, tokens), down: H * table.down };
        product(part(v, 0, tokens, h * K, K), part(moved, h * K, K), found);
      }
      product(own, moved, shared);
      product(equals, read, shared);
      product(part(one, 0, 4, 0, 4), w.b_in, part(shared, 0, 4, 0, F));
      product(w.b_out, w.W_U, part(shared, 0, 4, F, answers));
      product(w.W_out, w.W_U, W_L);
      steps.push({ forward: () => attend(N), backward: () => attendBack(N) });
      product(neurons, W_L, logits);
      const forward = () => {
        wipe(begin, y.at - begin);
        for (const { forward } of steps) forward();
      };
      const backward = () => {
        for (const { backward } of [...steps].reverse()) backward();
      };
      return { forward, backward };
    };

    /** How much head h looks at a, b and "=". */
    const look = (h, a, b) => {
      const score = [a, b, P].map((t) => row(heads[h].scores, t)[0] / sqrt(K));
      const top = max(...score);
      const weights = score.map((s) => exp(s - top));
      const sum = weights[0] + weights[1] + weights[2];
      return weights.map((weight) => weight / sum);
    };

    /** Adds to a row of c so many rows of b, of numbers a each. */
    const addLine = (c, a, b, count, b_down) => {
      for (let j = 0; j < 8 * reads; j += 128) line(c + j, a, b + j, count, 0, 0, 8, b_down);
    };

    const attend = (N) => {
      for (let n = 0; n < min(N, all.length); n++) {
        const { a, b } = all[n];
        const [weights, to] = [row(pattern, n), y.at + n * y.down];
        for (let h = 0; h < H; h++) look(h, a, b).forEach((weight, i) => (weights[4 * i + h] = weight));
        row(y, n).set(row(shared, 0));
        [a, b].forEach((t, i) =>
          addLine(to, pattern.at + n * pattern.down + 32 * i, table.at + t * H * table.down, H, table.down),
        );
        const neurons = row(y, n, F);
        for (let i = 0; i < F; i++) if (neurons[i] < 0) neurons[i] = 0;
      }
    };

    const attendBack = (N) => {
      const columns = copy(flipped(table));
      const [of_y, of_table, of_shared, of_pattern] = [y, table, shared, pattern].map(gradient);
      for (let n = 0; n < min(N, all.length); n++) {
        const { a, b } = all[n];
        const from = of_y.at + n * of_y.down;
        const [neurons, of_neurons] = [row(y, n, F), row(of_y, n, F)];
        for (let i = 0; i < F; i++) if (neurons[i] === 0) of_neurons[i] = 0;
        addLine(of_shared.at, one.at, from, 1, 0);
        [a, b].forEach((t, i) => {
          const [weights, of_weights] = [pattern, of_pattern].map((m) => m.at + n * m.down + 32 * i);
          quad(of_weights, from, columns.at + 8 * t * H, reads, 0, 0, 8, columns.down);
          for (let h = 0; h < H; h++)
            addLine(of_table.at + (t * H + h) * of_table.down, weights + 8 * h, from, 1, 0);
        });
        const [weight, of_weight] = [row(pattern, n), row(of_pattern, n)];
        for (let h = 0; h < H; h++) {
          const mean = weight[h] * of_weight[h] + weight[4 + h] * of_weight[4 + h];
          [a, b, P].forEach((t, i) => {
            const slope = i < 2 ? of_weight[4 * i + h] : 0;
            row(gradient(heads[h].scores), t)[0] += (weight[4 * i + h] * (slope - mean)) / sqrt(K);
          });
        }
      }
    };

    const [thoseThatTrain, everyone] = [trained, up(all.length, 4)].map(network);

    const chances = new Float64Array(R);

    /** Of pair n: its cross-entropy in nats, whether its largest logit is the answer's; and its `chances`. */
    const judge = (n) => {
      const logits = row(y, n).subarray(F, F + R);
      const { answer } = all[n];
      let best = 0;
      for (let i = 1; i < R; i++) if (logits[i] > logits[best]) best = i;
      let sum = 0;
      for (let i = 0; i < R; i++) sum += chances[i] = exp(logits[i] - logits[best]);
      for (let i = 0; i < R; i++) chances[i] /= sum;
      return { loss: log(sum) - (logits[answer] - logits[best]), right: best === answer };
    };

    /** The loss over the pairs that train; its gradient lies above the weights then. */
    const differentiate = () => {
      thoseThatTrain.forward();
      wipe(HALF, y.at + trained * y.down);
      let mean = 0;
      for (let n = 0; n < trained; n++) {
        const { answer, train } = all[n];
        mean += (judge(n).loss * train) / total;
        const slope = row(gradient(y), n).subarray(F, F + R);
        for (let i = 0; i < R; i++) slope[i] = ((chances[i] - (i === answer)) * train) / total;
      }
      thoseThatTrain.backward();
      return mean;
    };

    const moments = [0, 1].map(() => new Float64Array(values.length));
    let taken = 0;
    const step = () => {
      const loss = differentiate();
      const rate = lr * min((taken + 1) / max(warmup, 1), 1);
      taken++;
      const [unbias_1, unbias_2] = [1 - BETA_1 ** taken, 1 - BETA_2 ** taken];
      const [m, v] = moments;
      for (let i = 0; i < values.length; i++) {
        const slope = slopes[i];
        m[i] = BETA_1 * m[i] + (1 - BETA_1) * slope;
        v[i] = BETA_2 * v[i] + (1 - BETA_2) * slope * slope;
        values[i] = values[i] * (1 - rate * decay) - (rate * (m[i] / unbias_1)) / (sqrt(v[i] / unbias_2) + EPSILON);
      }
      return loss;
    };

    const measure = () => {
      everyone.forward();
      const found = all.map((_, n) => judge(n));
      const mean = (kind, what) => {
        const count = all.reduce((sum, pair) => sum + pair[kind], 0);
        return found.reduce((sum, one, n) => sum + all[n][kind] * one[what], 0) / count;
      };
      return {
        step: taken, trainLoss: mean("train", "loss"), testLoss: mean("test", "loss"),
        trainRight: mean("train", "right"), testRight: mean("test", "right"),
      };
    };

    const gradients = () => {
      differentiate();
      const of = ([name, { shape, values }]) => {
        const [m, length] = [gradient(w[name]), shape.at(-1)];
        return [name, Float32Array.from(values, (_, i) => row(m, floor(i / length))[i % length])];
      };
      return Object.fromEntries(Object.entries(initial).map(of));
    };

    // --- what is drawn of it ---

    /**
     * The strongest circles on which the residues' embeddings lie: the frequency, its share of their variance, and
     * where each of the R tokens lies in its plane, seen from the centre of the residues.
     */
    const circles = (count) => {
      const E = whole(w.W_E);
      const [cosine, sine] = [cos, sin].map((wave) => Array.from({ length: P }, (_, t) => wave((2 * PI * t) / P)));
      const of = (k) => {
        const [c, s] = [new Float64Array(D), new Float64Array(D)];
        for (let t = 0; t < P; t++)
          for (let d = 0; d < D; d++) {
            c[d] += E[t * D + d] * cosine[(k * t) % P];
            s[d] += E[t * D + d] * sine[(k * t) % P];
          }
        const power = [c, s].map((x) => x.reduce((sum, value) => sum + value * value, 0));
        return { k, c, s, power: power[0] + power[1] };
      };
      const found = Array.from({ length: (P - 1) / 2 }, (_, i) => of(i + 1));
      const sum = found.reduce((sum, { power }) => sum + power, 0);
      return found
        .sort((one, other) => other.power - one.power)
        .slice(0, count)
        .map(({ k, c, s, power }) => ({ k, share: sum ? power / sum : 0, points: plane(E, c, s) }));
    };

    /** Each token in the plane of two directions, made orthogonal. */
    const plane = (E, c, s) => {
      const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
      const unit = (x) => x.map((value) => value / (sqrt(dot(x, x)) || 1));
      const one = unit(c);
      const along = dot(s, one);
      const other = unit(s.map((value, i) => value - along * one[i]));
      const centre = new Float64Array(D);
      for (let t = 0; t < P; t++) for (let d = 0; d < D; d++) centre[d] += E[t * D + d] / P;
      return Array.from({ length: R }, (_, t) => {
        const from = centre.map((value, d) => E[t * D + d] - value);
        return [dot(from, one), dot(from, other)];
      });
    };

    /** What each head reads of a and every b, in a plane where the tokens lie at these points: H petals. */
    const petals = (points, a) => {
      const read = (h, b) => {
        const weights = look(h, a, b);
        return [0, 1].map((axis) => [a, b, P].reduce((sum, t, i) => sum + weights[i] * points[t][axis], 0));
      };
      return Array.from({ length: H }, (_, h) => Array.from({ length: P }, (_, b) => read(h, b)));
    };

    return { step, measure, gradients, circles, petals, taken: () => taken };
  };

  /** Listens in a worker. */
  const serve = () => {
    let run, steps;
    const measured = () => {
      const found = run.measure();
      const strongest = run.circles(SHOWN);
      return { ...found, strongest, read: run.petals(strongest[0].points, 0) };
    };
    onmessage = ({ data }) => {
      if (data.initial) {
        run = training(data.initial, data.seen, data);
        steps = data.steps;
        return postMessage({ step: 0, measurements: [measured()] });
      }
      const [until, measurements] = [performance.now() + data, []];
      let loss;
      do {
        loss = run.step();
        if (run.taken() % EVERY === 0) measurements.push(measured());
      } while (performance.now() < until && run.taken() < steps);
      postMessage({ step: run.taken(), loss, measurements });
    };
  };

  return { training, serve };
};
