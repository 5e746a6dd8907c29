// Descriptions of elements (dom.js) as text, to be compared: <tag a="b">...</tag>.
export function spelled(nodes) {
  return nodes.map((node) => {
    if (node.tag === undefined) return node.text;
    const attrs = Object.entries(node.attrs ?? {}).map(([name, value]) => ` ${name}="${value}"`).join('');
    return `<${node.tag}${attrs}>${spelled(node.children)}</${node.tag}>`;
  }).join('');
}

// The same without attributes, and without what stands around code.
export function plain(nodes) {
  return spelled(nodes).replace(/<(\w+) [^>]*>/g, '<$1>');
}

export function leaves(nodes) {
  return nodes.flatMap((node) => (node.tag === undefined ? [node] : leaves(node.children)));
}
