// Reads a safetensors file: an 8-byte length, a JSON header, raw little-endian numbers. For the elements that carry one.

/** The tensors by name: {shape, values}, in float32; whole numbers of 16 bits stay what they are. */
export const tensors = (bytes) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const tensor = ({ dtype, shape, data_offsets: [first, last] }) => {
    const [width, get] = dtype === "I16" ? [2, "getInt16"] : [4, "getFloat32"];
    const at = (_, i) => view[get](start + first + width * i, true);
    return { shape, values: Float32Array.from({ length: (last - first) / width }, at) };
  };
  return Object.fromEntries(Object.entries(header).map(([name, about]) => [name, tensor(about)]));
};

/** The bytes of a text in base64. */
export const decoded = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** The bytes that bookkit.web_components.asset made a script of: what a page does not carry from the beginning. */
export const fetched = (src) =>
  new Promise((resolve, reject) => {
    const script = document.createElement("script"); // not fetch, which a page that was opened as a file may not use
    Object.assign(script, { src, onload: () => resolve(decoded(script.data)), onerror: reject });
    document.head.append(script);
    script.remove();
  });
