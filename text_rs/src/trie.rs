//! Longest match over the bytes of the tokens.

use ahash::AHashMap;

use tokenizers::Result;

#[derive(Default)]
struct Node {
    children: AHashMap<u8, usize>,
    id: Option<i32>,
}

pub struct Trie {
    nodes: Vec<Node>,
    unknown_id: Option<i32>,
}

impl Trie {
    pub fn new(unknown_id: Option<i32>) -> Self {
        Self {
            nodes: vec![Node::default()],
            unknown_id,
        }
    }

    pub fn insert(&mut self, bytes: &[u8], id: i32) {
        if bytes.is_empty() {
            return;
        }
        let mut at = 0;
        for &byte in bytes {
            let fresh = self.nodes.len();
            let next = *self.nodes[at].children.entry(byte).or_insert(fresh);
            if next == fresh {
                self.nodes.push(Node::default());
            }
            at = next;
        }
        self.nodes[at].id = Some(id);
    }

    /// A byte that starts no token becomes the unknown token.
    pub fn encode(&self, text: &[u8], ids: &mut Vec<i32>) -> Result<()> {
        let mut start = 0;
        while start < text.len() {
            let mut at = 0;
            let mut best = None;
            for (i, byte) in text[start..].iter().enumerate() {
                match self.nodes[at].children.get(byte) {
                    Some(&next) => at = next,
                    None => break,
                }
                if let Some(id) = self.nodes[at].id {
                    best = Some((id, i + 1));
                }
            }
            let (id, length) = match (best, self.unknown_id) {
                (Some(found), _) => found,
                (None, Some(id)) => (id, 1),
                (None, None) => {
                    return Err(format!("no token for the byte 0x{:02X}", text[start]).into())
                }
            };
            ids.push(id);
            start += length;
        }
        Ok(())
    }
}
