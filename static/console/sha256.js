// @ts-check
/**
 * SHA-256 (FIPS 180-4) of what comes in pieces: the browser's own takes a whole file at once, and is not there on pages
 * without https.
 */

/** The first 32 bits of the fractional parts of the roots of the first primes. @param {number} count @param {number} root */
function fractions(count, root) {
  const found = [];
  for (let number = 2; found.length < count; number++) {
    if (isPrime(number)) found.push(fraction(number, root));
  }
  return Uint32Array.from(found);
}

/** @param {number} number */
function isPrime(number) {
  for (let each = 2; each * each <= number; each++) if (number % each === 0) return false;
  return true;
}

/** Exactly, by whole numbers: floor(number^(1/root) * 2^32) modulo 2^32. @param {number} number @param {number} root */
function fraction(number, root) {
  const wanted = BigInt(number) << BigInt(32 * root);
  let low = 0n;
  let high = 1n << 40n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(root) <= wanted) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn);
}

const K = fractions(64, 3);
const START = fractions(8, 2);
const BLOCK = 64;

/** @param {number} word @param {number} by */
const turned = (word, by) => (word >>> by) | (word << (32 - by));

export class Sha256 {
  #state = START.slice();
  #words = new Uint32Array(64);
  #rest = new Uint8Array(BLOCK);
  #filled = 0;
  #length = 0;

  /** @param {Uint8Array} bytes */
  update(bytes) {
    this.#length += bytes.length;
    let at = 0;
    if (this.#filled) {
      at = Math.min(BLOCK - this.#filled, bytes.length);
      this.#rest.set(bytes.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < BLOCK) return;
      this.#take(this.#rest, 0);
    }
    for (; at + BLOCK <= bytes.length; at += BLOCK) this.#take(bytes, at);
    this.#rest.set(bytes.subarray(at));
    this.#filled = bytes.length - at;
  }

  /** @returns {string} */
  digest() {
    const bits = BigInt(this.#length) * 8n;
    const padding = new Uint8Array(((this.#filled < 56 ? 56 : 120) - this.#filled) + 8);
    padding[0] = 0x80;
    new DataView(padding.buffer).setBigUint64(padding.length - 8, bits);
    this.update(padding);
    return [...this.#state].map((word) => word.toString(16).padStart(8, "0")).join("");
  }

  /** @param {Uint8Array} bytes @param {number} at */
  #take(bytes, at) {
    const words = this.#words;
    for (let i = 0; i < 16; i++, at += 4) {
      words[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
    }
    for (let i = 16; i < 64; i++) {
      const early = words[i - 15];
      const late = words[i - 2];
      const first = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
      const second = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10);
      words[i] = words[i - 16] + first + words[i - 7] + second;
    }
    const state = this.#state;
    let [a, b, c, d, e, f, g, h] = /** @type {number[] & { length: 8 }} */ (Array.from(state));
    for (let i = 0; i < 64; i++) {
      const one = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
      const two = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + two) | 0;
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] += word;
  }
}
